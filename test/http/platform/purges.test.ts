import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { parsePublicUrl } from '../../../src/contract/external-url.ts';
import { parsePurgeOrder } from '../../../src/contract/purge-order.ts';
import { platformResources } from '../../../src/contract/resources.ts';
import { metricsSettings, order } from '../../support/telemetry/prometheus-text.ts';
import { samples, shareTestApp, type TestApp, useTestApp } from '../../support/test-app.ts';

// Contract §14: purges as the platform sends them to a CDN.

const settings = {
  ...metricsSettings,
  PUBLIC_URLS: 'https://cdn.example.com,http://chat.example.org:8080/media',
};
const originals = {
  avatar: ['avatars/1/ab12', '/avatars/1/ab12.webp?size=16'],
  sibling: ['avatars/1/ab12cd', '/avatars/1/ab12cd.webp?size=16'],
  other: ['avatars/12/ab12', '/avatars/12/ab12.webp?size=16'],
  emoji: ['emojis/5', '/emojis/5.gif?size=16'],
  file: ['attachments/1/2/naïve 1.png', '/attachments/1/2/na%C3%AFve%201.png?width=8'],
} as const;
const names = Object.keys(originals) as (keyof typeof originals)[];

/** Has all renderings made, so that it is seen which are made anew. */
async function render(app: TestApp) {
  for (const [key, target] of Object.values(originals)) {
    app.originals.put(key, samples.png);
    expect((await app.get(target)).statusCode).toBe(200);
  }
  return {
    purge: async (prefixes: unknown) => {
      const response = await order(app, '/purge', { prefixes });
      return { status: response.statusCode, body: response.json() };
    },
    /** The renderings that are made anew. */
    findPurged: async () => {
      const purged: string[] = [];
      for (const name of names) {
        const { headers } = await app.get(originals[name][1]);
        if (!String(headers['cache-status']).startsWith('darkroom; hit')) purged.push(name);
      }
      return purged;
    },
  };
}

const strict = shareTestApp({ settings });
const platform = shareTestApp({ settings: { ...settings, COMPATIBILITY: 'fluxer' } });

test.each<[prefixes: string[], purged: string[]]>([
  [['cdn.example.com/avatars/1/ab12'], ['avatar']],
  [['cdn.example.com/avatars/1/a_ab12'], ['avatar']],
  [['cdn.example.com/avatars/1/ab12.png'], ['avatar']],
  [['cdn.example.com/avatars/1/a_ab12.JPEG'], ['avatar']],
  [['CDN.example.com:443/avatars/1/ab12/'], ['avatar']],
  [['chat.example.org:8080/media/avatars/1/ab12'], ['avatar']],
  [['cdn.example.com/avatars/1'], ['avatar', 'sibling']],
  [['cdn.example.com/avatars/1/'], ['avatar', 'sibling']],
  [['cdn.example.com/avatars'], ['avatar', 'sibling', 'other']],
  [
    ['cdn.example.com/emojis/5', 'cdn.example.com/avatars/12'],
    ['other', 'emoji'],
  ],
  [
    ['cdn.example.com/emojis/5.webp', 'cdn.example.com/avatars/1/ab12'],
    ['avatar', 'emoji'],
  ],
  [['cdn.example.com/attachments/1/2/na%C3%AFve%201.png'], ['file']],
  [['cdn.example.com/attachments/1/2/naïve 1.png'], ['file']],
  [['cdn.example.com/attachments/1/2'], ['file']],
  [['cdn.example.com/attachments'], ['file']],
  [['cdn.example.com/avatars/7/none'], []],
])('%j purges %j', async (prefixes, purged) => {
  for (const app of [strict, platform]) {
    const { purge, findPurged } = await render(app);
    expect((await purge(prefixes)).status).toBe(200);
    expect(await findPurged()).toEqual(purged);
  }
});

test('a purge counts each rendering once', async () => {
  const { purge } = await render(strict);
  const all = ['avatars', 'avatars/1', 'avatars/1/ab12'].map((path) => `cdn.example.com/${path}`);
  expect((await purge(all)).body).toEqual({ removed: { memory: 3, store: 0 } });
});

test('resources of the mode are named with or without their extension', () => {
  const publicUrls = [parsePublicUrl('https://cdn.example.com') ?? expect.fail()];
  const reading = { publicUrls, resources: platformResources };
  const parse = (path: string) =>
    parsePurgeOrder({ prefixes: [`cdn.example.com/${path}`] }, reading);
  const sounds = ['mp3', 'ogg', 'm4a', 'wav'].map((ext) => `entrance-sounds/1/ab.${ext}`);
  for (const [path, originKeys] of [
    ['themes/dark.css', ['themes/dark.css']],
    ['themes/dark', ['themes/dark.css']],
    ['entrance-sounds/1/ab.mp3', ['entrance-sounds/1/ab.mp3']],
    ['entrance-sounds/1/ab', sounds],
    ['branding/here/a_ab.png', ['branding/here/a_ab', 'branding/here/ab']],
  ] as const) {
    const order = parse(path);
    expect(order.kind === 'originals' && order.originKeys).toEqual(originKeys);
    expect(() => parsePurgeOrder({ assets: [path] })).toThrow(MediaError);
  }
  expect(parse('themes')).toMatchObject({ originKeys: [], folders: ['themes/'] });
  // Attachments of any depth: 1 may be one, and a folder of others.
  const both = { originKeys: ['attachments/1'], folders: ['attachments/1/'] };
  expect(parse('attachments/1')).toMatchObject(both);
  expect(parsePurgeOrder({ prefix: 'attachments/1/' }, reading)).toMatchObject(both);
  const deep = 'attachments/deep/er/than/usual/a.png';
  expect(parsePurgeOrder({ assets: [deep] }, reading)).toMatchObject({ originKeys: [deep] });
  expect(parsePurgeOrder({ paths: [`/${deep}?width=9&format=no`] }, reading)).toMatchObject({
    requests: [{ originKey: deep, widthPx: 9 }],
  });
  for (const order of [{ assets: ['branding/here/ab'] }, { prefix: 'branding/here/' }]) {
    expect(parsePurgeOrder(order, reading)).toMatchObject({ kind: 'originals' });
    expect(() => parsePurgeOrder(order)).toThrow(MediaError);
  }
});

describe('a prefix is refused that', () => {
  const host = /^Expected the host and path of one of PUBLIC_URLS/;
  const path = /^Expected the path of an original/;

  test.each<[why: string, prefix: unknown, message: RegExp]>([
    ['has another host', 'example.com/avatars/1/ab12', host],
    ['has another port', 'cdn.example.com:8443/avatars/1/ab12', host],
    ['is not below the base path', 'chat.example.org:8080/avatars/1/ab12', host],
    ['is beside the base path', 'chat.example.org:8080/mediaavatars/1/ab12', host],
    ['has a scheme', 'https://cdn.example.com/avatars/1/ab12', host],
    ['has a user', 'a@cdn.example.com/avatars/1/ab12', host],
    ['has a query', 'cdn.example.com/avatars/1/ab12.png?size=16', host],
    ['is empty', '', host],
    ['is a host alone', 'cdn.example.com', path],
    ['is a host and a slash', 'cdn.example.com/', path],
    ['names nothing', 'cdn.example.com/avatarss/1/ab12', path],
    ['names no id', 'cdn.example.com/avatars/x/ab12', path],
    ['is deeper than an original', 'cdn.example.com/avatars/1/ab12/x', path],
    ['is of external media', 'cdn.example.com/external/x', path],
    ['has an empty segment', 'cdn.example.com/avatars//ab12', path],
    ['is no text', 1, /./],
  ])('%s', async (_, prefix, message) => {
    const { purge, findPurged } = await render(strict);
    const { status, body } = await purge(['cdn.example.com/avatars/1/ab12', prefix]);
    expect([status, body.code]).toEqual([400, 'INVALID_FORM_BODY']);
    expect(body.errors).toEqual([{ path: 'prefixes.1', message: expect.stringMatching(message) }]);
    expect(await findPurged()).toEqual([]);
  });

  test('is sent to a service without public URLs', async () => {
    const { purge } = await render(await useTestApp({ settings: metricsSettings }));
    expect((await purge(['cdn.example.com/avatars/1/ab12'])).status).toBe(400);
    expect((await purge([])).status).toBe(400);
  });
});
