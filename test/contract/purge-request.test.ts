import { describe, expect, test } from 'vitest';
import { parsePurgeRequest } from '../../src/contract/purge-request.ts';
import { externalKeyOf, formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';

const url = 'https://media.example.org/cat.png';
const key = externalKeyOf(url);

describe('purges of external media', () => {
  test.each([
    [{ external: [url] }],
    [{ external: [url, 'HTTPS://Media.Example.Org:443/x/../cat.png#top'] }],
    [{ assets: [key] }],
    [{ assets: [`${key}/`] }],
    [{ prefix: `${key}/` }],
  ])('%j purges all renderings of one URL', (body) => {
    expect(parsePurgeRequest(body)).toEqual({ kind: 'originals', originKeys: [key] });
  });

  test('accept a prefix that covers all URLs', () => {
    expect(parsePurgeRequest({ prefix: 'external/' })).toEqual({
      kind: 'originals',
      originKeys: [],
      prefixes: ['external/'],
    });
  });

  test('accept the path of one rendering with any signature', () => {
    const path = formatExternalPath(
      url,
      new SigningKeys(['a-key-that-is-not-in-use-any-more-at-all']),
    );
    for (const spelled of [path, path.replace(/^\/external\/[^/]+/, '/external/unsigned')]) {
      expect(parsePurgeRequest({ paths: [`${spelled}?width=64`] })).toMatchObject({
        kind: 'renderings',
        renderings: [{ originKey: key, url, widthPx: 64 }],
      });
    }
  });
});

describe('malformed purges', () => {
  const shape = 'Expected an object with one of paths, assets, prefix, external, prefixes.';
  const noKey = /Expected an origin key/;
  const any = /.+/;

  test.each<[unknown, ...[path: string, message: string | RegExp][]]>([
    [{}, ['', shape]],
    [[], ['', shape]],
    [{ prefix: 'icons/', assets: ['icons/1/ab'] }, ['', shape]],
    [{ external: [url], assets: [key] }, ['', shape]],
    [{ paths: [] }, ['paths', 'Expected at least one item.']],
    [{ paths: 'x' }, ['paths', 'Expected a list of strings.']],
    [
      {
        paths: ['/icons/1/a.gif', '/nowhere', '/icons/x/a.gif', 'xicons/1/a.gif', '/avatars/1.png'],
      },
      ['paths.1', 'Path not found.'],
      ['paths.2', /^Expected a decimal integer/],
      ['paths.3', 'Path not found.'],
      ['paths.4', 'Default avatars are never purged.'],
    ],
    [{ paths: ['/external/x'] }, ['paths.0', any]],
    [{ prefix: '' }, ['prefix', noKey], ['prefix', /ends with a slash/]],
    [{ prefix: '/' }, ['prefix', noKey]],
    [{ prefix: 'icons/1' }, ['prefix', /ends with a slash/]],
    [{ prefix: '../' }, ['prefix', noKey]],
    [{ prefix: 'iconss/' }, ['prefix', /one of avatars, icons, .*, attachments\./]],
    [{ prefix: 'icons/x/' }, ['prefix', noKey]],
    [{ prefix: 'guilds/1/members/' }, ['prefix', noKey]],
    [{ prefix: 'emojis/1/x/' }, ['prefix', noKey]],
    [{ prefix: 'external/cat/' }, ['prefix', any]],
    [{ assets: ['iconss/1/ab'] }, ['assets.0', /one of avatars, icons, .*, attachments;/]],
    [{ assets: ['icons/1/ab', 'icons//ab'] }, ['assets.1', noKey]],
    [{ assets: ['icons/1/a\u0000b'] }, ['assets.0', noKey]],
    [{ assets: ['attachments/1/2/\ud800'] }, ['assets.0', noKey]],
    [{ assets: ['icons/1'] }, ['assets.0', noKey]],
    [{ assets: ['icons/x/ab', 'emojis/1'] }, ['assets.0', noKey]],
    [{ assets: ['/icons/1/ab'] }, ['assets.0', noKey]],
    [{ assets: ['external/cat'] }, ['assets.0', any]],
    [{ external: [] }, ['external', any]],
    [{ external: url }, ['external', any]],
    [{ external: ['media.example.org/cat.png'] }, ['external.0', any]],
    [{ external: [url, 'ftp://media.example.org/'] }, ['external.1', any]],
    [{ external: ['https://media.example.org/\n'] }, ['external.0', any]],
  ])('%j is rejected with a list of its errors', (body, ...faults) => {
    const expected = faults.map(([path, message]) => ({
      path,
      message: expect.stringMatching(message),
    }));
    expect(() => parsePurgeRequest(body)).toThrow(
      expect.objectContaining({ code: 'INVALID_FORM_BODY', faults: expected }),
    );
  });
});
