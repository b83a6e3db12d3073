import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { parsePublicUrl } from '../../../src/contract/external-url.ts';
import { parsePurgeRequest } from '../../../src/contract/purge-request.ts';
import { platformResources } from '../../../src/contract/resources.ts';
import { metricsSettings, sendToAdmin } from '../../support/telemetry/prometheus-text.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

// Contract §14: purges as the platform sends them to a CDN. test/cache tests their effect.

const bases = ['https://cdn.example.com', 'http://chat.example.org:8080/media'];
const publicUrls = bases.map((base) => parsePublicUrl(base) ?? expect.fail());
const platformOptions = { publicUrls, resources: platformResources };

test.each<[urlPrefix: string, originKeys: string[], keyPrefixes?: string[]]>([
  ['cdn.example.com/avatars/1/ab12', ['avatars/1/ab12']],
  ['cdn.example.com/avatars/1/a_ab12', ['avatars/1/a_ab12', 'avatars/1/ab12']],
  ['cdn.example.com/avatars/1/ab12.png', ['avatars/1/ab12']],
  ['cdn.example.com/avatars/1/a_ab12.JPEG', ['avatars/1/a_ab12', 'avatars/1/ab12']],
  ['CDN.example.com:443/avatars/1/ab12/', ['avatars/1/ab12']],
  ['chat.example.org:8080/media/avatars/1/ab12', ['avatars/1/ab12']],
  ['cdn.example.com/avatars/1', [], ['avatars/1/']],
  ['cdn.example.com/avatars/1/', [], ['avatars/1/']],
  ['cdn.example.com/avatars', [], ['avatars/']],
  ['cdn.example.com/emojis/5.webp', ['emojis/5']],
  ['cdn.example.com/attachments/1/2', [], ['attachments/1/2/']],
  ['cdn.example.com/attachments', [], ['attachments/']],
  ['cdn.example.com/attachments/1/2/na%C3%AFve%201.png', ['attachments/1/2/naïve 1.png']],
  ['cdn.example.com/attachments/1/2/naïve 1.png', ['attachments/1/2/naïve 1.png']],
])('%s purges the keys %j and the key prefixes %j', (urlPrefix, originKeys, keyPrefixes = []) => {
  const body = { prefixes: [urlPrefix] };
  expect(parsePurgeRequest(body, { publicUrls })).toEqual({
    kind: 'originals',
    originKeys,
    prefixes: keyPrefixes,
  });
  // In platform mode, these are keys as well as prefixes, since attachments have any depth.
  if (urlPrefix.includes('attachments/')) return;
  expect(parsePurgeRequest(body, platformOptions)).toMatchObject({ kind: 'originals', originKeys });
});

test('counts a rendering once if several prefixes match it', async () => {
  const app = await useTestApp({ settings: { ...metricsSettings, PUBLIC_URLS: bases.join() } });
  for (const key of ['avatars/1/ab12', 'avatars/1/ab12cd', 'avatars/12/ab12', 'emojis/5']) {
    app.originals.put(key, samples.png);
    expect((await app.get(`/${key}.webp?size=16`)).statusCode).toBe(200);
  }
  const paths = ['avatars', 'avatars/1', 'avatars/1/ab12'];
  const prefixes = paths.map((path) => `cdn.example.com/${path}`);
  const purged = await sendToAdmin(app, '/purge', { prefixes });
  expect(purged.json()).toEqual({ removed: { memory: 3, store: 0 } });
});

test('accepts resources of the platform with and without their extension', () => {
  const parse = (path: string) =>
    parsePurgeRequest({ prefixes: [`cdn.example.com/${path}`] }, platformOptions);
  const sounds = ['mp3', 'ogg', 'm4a', 'wav'].map((ext) => `entrance-sounds/1/ab.${ext}`);
  for (const [path, originKeys] of [
    ['themes/dark.css', ['themes/dark.css']],
    ['themes/dark', ['themes/dark.css']],
    ['entrance-sounds/1/ab.mp3', ['entrance-sounds/1/ab.mp3']],
    ['entrance-sounds/1/ab', sounds],
    ['branding/here/a_ab.png', ['branding/here/a_ab', 'branding/here/ab']],
  ] as const) {
    expect(parse(path)).toMatchObject({ kind: 'originals', originKeys });
    expect(() => parsePurgeRequest({ assets: [path] })).toThrow(MediaError);
  }
  expect(parse('themes')).toMatchObject({ originKeys: [], prefixes: ['themes/'] });
  // Attachments have any depth: `1` may be an attachment, and a directory of others.
  const both = { originKeys: ['attachments/1'], prefixes: ['attachments/1/'] };
  expect(parse('attachments/1')).toMatchObject(both);
  expect(parsePurgeRequest({ prefix: 'attachments/1/' }, platformOptions)).toMatchObject(both);
  const deep = 'attachments/deep/er/than/usual/a.png';
  expect(parsePurgeRequest({ assets: [deep] }, platformOptions)).toMatchObject({
    originKeys: [deep],
  });
  const paths = [`/${deep}?width=9&format=no`];
  expect(parsePurgeRequest({ paths }, platformOptions)).toMatchObject({
    renderings: [{ originKey: deep, widthPx: 9 }],
  });
  for (const body of [{ assets: ['branding/here/ab'] }, { prefix: 'branding/here/' }]) {
    expect(parsePurgeRequest(body, platformOptions)).toMatchObject({ kind: 'originals' });
    expect(() => parsePurgeRequest(body)).toThrow(MediaError);
  }
});

describe('a URL prefix is rejected if it', () => {
  const host = /^Expected the host and path of one of PUBLIC_URLS/;
  const path = /^Expected the path of an original/;

  test.each<[why: string, prefix: unknown, message: RegExp]>([
    ['has another host', 'example.com/avatars/1/ab12', host],
    ['has another port', 'cdn.example.com:8443/avatars/1/ab12', host],
    ['is not below the base path', 'chat.example.org:8080/avatars/1/ab12', host],
    [
      'only shares its first characters with the base path',
      'chat.example.org:8080/mediaavatars/1/ab12',
      host,
    ],
    ['has a scheme', 'https://cdn.example.com/avatars/1/ab12', host],
    ['has a user', 'a@cdn.example.com/avatars/1/ab12', host],
    ['has a query', 'cdn.example.com/avatars/1/ab12.png?size=16', host],
    ['is empty', '', host],
    ['has a host only', 'cdn.example.com', path],
    ['has a host and a slash only', 'cdn.example.com/', path],
    ['has an unknown path', 'cdn.example.com/avatarss/1/ab12', path],
    ['has an invalid id', 'cdn.example.com/avatars/x/ab12', path],
    ['is deeper than an original', 'cdn.example.com/avatars/1/ab12/x', path],
    ['is of external media', 'cdn.example.com/external/x', path],
    ['has an empty segment', 'cdn.example.com/avatars//ab12', path],
    ['is a number', 1, /./],
  ])('%s', (_, prefix, message) => {
    const prefixes = ['cdn.example.com/avatars/1/ab12', prefix];
    const faults = [{ path: 'prefixes.1', message: expect.stringMatching(message) }];
    expect(() => parsePurgeRequest({ prefixes }, { publicUrls })).toThrow(
      expect.objectContaining({ code: 'INVALID_FORM_BODY', faults }),
    );
  });

  test('reaches a service without public URLs', () => {
    for (const prefixes of [['cdn.example.com/avatars/1/ab12'], []]) {
      expect(() => parsePurgeRequest({ prefixes })).toThrow(MediaError);
    }
  });
});
