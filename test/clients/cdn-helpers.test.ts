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

/** Fetches each URL; tells the statuses, having seen that type and body are what the status says. */
async function fetchStatuses(urls: NamedUrls): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (const [name, url] of Object.entries(urls)) {
    const answer = await fetch(url);
    const body = await answer.arrayBuffer();
    const type = answer.headers.get('content-type');
    if (answer.ok) {
      const { format } = await sharp(body).metadata();
      expect([format, type], url).toEqual([formatAskedBy(url), `image/${format}`]);
    } else {
      expect(type, url).toMatch(/^application\/json\b/);
      expect(JSON.parse(Buffer.from(body).toString()), url).toHaveProperty('code');
    }
    statuses[name] = answer.status;
  }
  return statuses;
}

/** That the library builds its part of the table, and each of the URLs gets the table's status. */
async function expectTableOf(client: string, urls: NamedUrls): Promise<void> {
  const rows = readClientUrls().filter((row) => row.client === client);
  expect(urls).toEqual(
    Object.fromEntries(rows.map(({ resource, target }) => [resource, base + target])),
  );
  expect(await fetchStatuses(urls)).toEqual(
    Object.fromEntries(rows.map(({ resource, status }) => [resource, status])),
  );
}

describe('@discordjs/rest', () => {
  test('builds the URLs of the table, and gets what the contract says', async () => {
    await expectTableOf('discordjs', discordjsTableUrls(new CDN(base, base)));
  });

  test('gets a 404 for what the platform does not have', async () => {
    expect(await fetchStatuses(discordjsOtherUrls(new CDN(base, base)))).toEqual({
      'user banner': 200,
      'app asset': 404,
      'app icon': 404,
      'avatar decoration': 404,
      'avatar decoration of a user': 404,
      'sticker pack banner': 404,
      'team icon': 404,
      'event cover': 404,
    });
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
    const statuses = await fetchStatuses(Object.fromEntries(urls));
    expect(new Set(Object.values(statuses))).toEqual(new Set([200]));
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
  test('builds the URLs of the table, and gets what the contract says', async () => {
    await expectTableOf('eris', atDarkroom(erisTableUrls()));
  });

  test('is tried with each of its helpers', async () => {
    const structures = createErisStructures();
    expect(structures.map((structure) => structure.constructor.name).sort()).toEqual(
      classesWithUrls(eris),
    );
    expect(await fetchStatuses(atDarkroom(urlsOfStructures(structures)))).toEqual({
      'User.avatarURL': 200,
      'User.staticAvatarURL': 200,
      'User.dynamicAvatarURL': 200,
      'User.bannerURL': 200,
      'User.dynamicBannerURL': 200,
      'User.defaultAvatarURL': 404,
      'User.avatarDecorationURL': 404,
      'Guild.iconURL': 200,
      'Guild.dynamicIconURL': 200,
      'Guild.bannerURL': 200,
      'Guild.dynamicBannerURL': 200,
      'Guild.splashURL': 200,
      'Guild.dynamicSplashURL': 200,
      'Guild.discoverySplashURL': 404,
      'Guild.dynamicDiscoverySplashURL': 404,
      'GuildPreview.iconURL': 200,
      'GuildPreview.dynamicIconURL': 200,
      'GuildPreview.splashURL': 200,
      'GuildPreview.dynamicSplashURL': 200,
      'GuildPreview.discoverySplashURL': 404,
      'GuildPreview.dynamicDiscoverySplashURL': 404,
      'Member.avatarURL': 200,
      'Member.staticAvatarURL': 200,
      'Member.dynamicAvatarURL': 200,
      'Member.bannerURL': 200,
      'Member.defaultAvatarURL': 404,
      'Member.avatarDecorationURL': 404,
      'Role.iconURL': 404,
      'GroupChannel.iconURL': 404,
      'GroupChannel.dynamicIconURL': 404,
      'GuildScheduledEvent.imageURL': 404,
    });
  });
});

describe('oceanic.js', () => {
  test('builds the URLs of the table, and gets what the contract says', async () => {
    await expectTableOf('oceanic', atDarkroom(oceanicTableUrls()));
  });

  test('is tried with each of its helpers', async () => {
    const structures = createOceanicStructures();
    expect(structures.map((structure) => structure.constructor.name).sort()).toEqual(
      classesWithUrls(oceanic),
    );
    expect(await fetchStatuses(atDarkroom(urlsOfStructures(structures)))).toEqual({
      'User.avatarURL': 200,
      'User.bannerURL': 200,
      'User.defaultAvatarURL': 404,
      'User.avatarDecorationURL': 404,
      'Guild.iconURL': 200,
      'Guild.bannerURL': 200,
      'Guild.splashURL': 200,
      'Guild.discoverySplashURL': 404,
      'GuildPreview.iconURL': 200,
      'GuildPreview.splashURL': 200,
      'GuildPreview.discoverySplashURL': 404,
      'InviteGuild.iconURL': 200,
      'InviteGuild.bannerURL': 200,
      'InviteGuild.splashURL': 200,
      'OAuthGuild.iconURL': 200,
      'OAuthGuild.bannerURL': 200,
      'Member.avatarURL': 200,
      'Member.bannerURL': 200,
      'Member.avatarDecorationURL': 404,
      'Application.iconURL': 404,
      'Application.coverImageURL': 404,
      'OAuthApplication.iconURL': 404,
      'OAuthApplication.coverImageURL': 404,
      'PartialApplication.iconURL': 404,
      'GroupChannel.iconURL': 404,
      'GuildScheduledEvent.imageURL': 404,
      'PrimaryGuild.badgeURL': 404,
      'Webhook.avatarURL': 200,
      // The library writes the webhook's id where the guild's belongs: a good path, no such icon.
      'Webhook.sourceGuildIconURL': 404,
    });
  });

  test('gets every size that it lets one ask for', async () => {
    const { util } = new oceanic.Client({});
    const path = oceanic.Routes.CUSTOM_EMOJI(clientIds.emoji);
    const sizes = oceanic.Constants.MEDIA_PROXY_SIZES;
    const urls = sizes.map((size) => [String(size), util.formatImage(path, 'webp', size)]);
    expect(urls).toHaveLength(31);
    const statuses = await fetchStatuses(atDarkroom(Object.fromEntries(urls)));
    expect(new Set(Object.values(statuses))).toEqual(new Set([200]));
  });
});

test('what the platform does not have is not looked for in the storage', () => {
  const misplaced = `icons/${clientIds.user}/${clientIds.stillHash}`; // the webhook's, see above
  const keys = [...app.originals.reads.keys()];
  expect(keys.filter((key) => !clientOriginalKeys.includes(key))).toEqual([misplaced]);
  expect(app.log.errors).toEqual([]);
});
