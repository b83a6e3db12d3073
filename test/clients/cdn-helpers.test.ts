import { ALLOWED_EXTENSIONS, ALLOWED_SIZES, CDN } from '@discordjs/rest';
import * as eris from 'eris';
import * as oceanic from 'oceanic.js';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { classesWithUrls, type NamedUrls, urlsOfStructures } from './client-structures.ts';
import {
  clientIds,
  clientOriginalKeys,
  formatAskedBy,
  putClientOriginals,
  readClientUrls,
} from './client-urls.ts';
import { discordjsOtherUrls, discordjsTableUrls } from './discordjs-urls.ts';
import { createErisStructures, erisTableUrls } from './eris-urls.ts';
import { createOceanicStructures, oceanicTableUrls } from './oceanic-urls.ts';

/** The constant of eris and oceanic.js; neither has an option for it. */
const DISCORD_CDN = 'https://cdn.discordapp.com';

let app: TestApp;
let base: string;

beforeAll(async () => {
  app = await createTestApp();
  putClientOriginals(app.originals);
  base = `http://127.0.0.1:${await app.listen()}`;
});

afterAll(async () => {
  await app.close();
});

/** Sends URLs to Darkroom: another host, the path and query untouched. */
function atDarkroom(urls: NamedUrls): NamedUrls {
  const moved = Object.entries(urls).map(([name, url]) => {
    expect(url.startsWith(`${DISCORD_CDN}/`), `${name}: ${url}`).toBe(true);
    return [name, base + url.slice(DISCORD_CDN.length)];
  });
  return Object.fromEntries(moved);
}

/**
 * Fetches each URL and checks that type and body are what the status says.
 *
 * @returns the names of those that got a 404; the others got a 200
 */
async function findMissing(urls: NamedUrls): Promise<string[]> {
  const missing: string[] = [];
  for (const [name, url] of Object.entries(urls)) {
    const response = await fetch(url);
    const body = await response.arrayBuffer();
    const type = response.headers.get('content-type');
    if (response.ok) {
      const { format } = await sharp(body).metadata();
      expect([format, type], url).toEqual([formatAskedBy(url), `image/${format}`]);
    } else {
      expect(response.status, url).toBe(404);
      expect(type, url).toMatch(/^application\/json\b/);
      expect(JSON.parse(Buffer.from(body).toString()), url).toHaveProperty('code');
      missing.push(name);
    }
  }
  return missing;
}

/** The part of the table that a library builds; every URL of the table is asked for by a test of its own. */
function tableOf(client: string): NamedUrls {
  const rows = readClientUrls().filter((row) => row.client === client);
  return Object.fromEntries(rows.map(({ resource, target }) => [resource, base + target]));
}

describe('@discordjs/rest', () => {
  test('builds the URLs of the table', () => {
    expect(discordjsTableUrls(new CDN(base, base))).toEqual(tableOf('discordjs'));
  });

  test('gets a 404 for what the platform does not have', async () => {
    const urls = discordjsOtherUrls(new CDN(base, base));
    const missing = Object.keys(urls).filter((name) => name !== 'user banner');
    expect(await findMissing(urls)).toEqual(missing);
  });

  test('gets every size and extension that it lets one ask for', async () => {
    const { guild, stillHash } = clientIds;
    const cdn = new CDN(base, base);
    const urls = ALLOWED_EXTENSIONS.flatMap((extension) =>
      ALLOWED_SIZES.map((size) => {
        const options = { extension, size } as Parameters<CDN['icon']>[2];
        return [`${extension} ${size}`, cdn.icon(guild, stillHash, options)];
      }),
    );
    expect(urls.length).toBeGreaterThanOrEqual(45);
    expect(await findMissing(Object.fromEntries(urls))).toEqual([]);
  });

  test('has no helper that is not tried here', () => {
    const internal = ['constructor', 'makeURL', 'dynamicMakeURL'];
    const helpers = Object.getOwnPropertyNames(CDN.prototype).filter(
      (name) => !internal.includes(name),
    );
    const cdn = new CDN(base, base);
    const spies = helpers.map((name) => vi.spyOn(cdn, name as keyof CDN));
    discordjsTableUrls(cdn);
    discordjsOtherUrls(cdn);
    expect(helpers).toContain('guildMemberBanner');
    expect(helpers.filter((_, index) => spies[index]?.mock.calls.length === 0)).toEqual([]);
  });
});

describe('eris', () => {
  test('builds the URLs of the table', () => {
    expect(atDarkroom(erisTableUrls())).toEqual(tableOf('eris'));
  });

  test('is tried with each of its helpers', async () => {
    const structures = createErisStructures();
    expect(structures.map((structure) => structure.constructor.name).sort()).toEqual(
      classesWithUrls(eris),
    );
    expect(await findMissing(atDarkroom(urlsOfStructures(structures)))).toEqual([
      'User.avatarDecorationURL',
      'User.defaultAvatarURL',
      'Guild.discoverySplashURL',
      'Guild.dynamicDiscoverySplashURL',
      'GuildPreview.discoverySplashURL',
      'GuildPreview.dynamicDiscoverySplashURL',
      'Member.avatarDecorationURL',
      'Member.defaultAvatarURL',
      'Role.iconURL',
      'GroupChannel.dynamicIconURL',
      'GroupChannel.iconURL',
      'GuildScheduledEvent.imageURL',
    ]);
  });
});

describe('oceanic.js', () => {
  test('builds the URLs of the table', () => {
    expect(atDarkroom(oceanicTableUrls())).toEqual(tableOf('oceanic'));
  });

  test('is tried with each of its helpers', async () => {
    const structures = createOceanicStructures();
    expect(structures.map((structure) => structure.constructor.name).sort()).toEqual(
      classesWithUrls(oceanic),
    );
    expect(await findMissing(atDarkroom(urlsOfStructures(structures)))).toEqual([
      'User.avatarDecorationURL',
      'User.defaultAvatarURL',
      'Guild.discoverySplashURL',
      'GuildPreview.discoverySplashURL',
      'Member.avatarDecorationURL',
      'Application.coverImageURL',
      'Application.iconURL',
      'OAuthApplication.coverImageURL',
      'OAuthApplication.iconURL',
      'PartialApplication.iconURL',
      'GroupChannel.iconURL',
      'GuildScheduledEvent.imageURL',
      'PrimaryGuild.badgeURL',
      // The library writes the webhook's id where the guild's belongs: a good path, no such icon.
      'Webhook.sourceGuildIconURL',
    ]);
  });

  test('gets every size that it lets one ask for', async () => {
    const { util } = new oceanic.Client({});
    const path = oceanic.Routes.CUSTOM_EMOJI(clientIds.emoji);
    const sizes = oceanic.Constants.MEDIA_PROXY_SIZES;
    const urls = sizes.map((size) => [String(size), util.formatImage(path, 'webp', size)]);
    expect(urls).toHaveLength(31);
    expect(await findMissing(atDarkroom(Object.fromEntries(urls)))).toEqual([]);
  });
});

test('what the platform does not have is not looked for in the storage', () => {
  const misplaced = `icons/${clientIds.user}/${clientIds.stillHash}`; // the webhook's, see above
  const keys = [...app.originals.reads.keys()];
  expect(keys.filter((key) => !clientOriginalKeys.includes(key))).toEqual([misplaced]);
  expect(app.log.errors).toEqual([]);
});
