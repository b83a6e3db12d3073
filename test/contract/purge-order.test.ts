import { describe, expect, test } from 'vitest';
import { parsePurgeOrder } from '../../src/contract/purge-order.ts';
import { externalKeyOf, formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';

const url = 'https://media.example.org/cat.png';
const key = externalKeyOf(url);

describe('a purge of external media', () => {
  test.each([
    [{ external: [url] }],
    [{ external: [url, 'HTTPS://Media.Example.Org:443/x/../cat.png#top'] }],
    [{ assets: [key] }],
    [{ assets: [`${key}/`] }],
    [{ prefix: `${key}/` }],
  ])('%j is of all renderings of one URL', (order) => {
    expect(parsePurgeOrder(order)).toEqual({ kind: 'originals', originKeys: [key] });
  });

  test('may be of all URLs', () => {
    expect(parsePurgeOrder({ prefix: 'external/' })).toEqual({
      kind: 'prefix',
      prefix: 'external/',
    });
  });

  test('may be of one rendering, by any key that signed its path', () => {
    const path = formatExternalPath(
      url,
      new SigningKeys(['a-key-that-is-not-in-use-any-more-at-all']),
    );
    for (const spelled of [path, path.replace(/^\/external\/[^/]+/, '/external/unsigned')]) {
      expect(parsePurgeOrder({ paths: [`${spelled}?width=64`] })).toMatchObject({
        kind: 'requests',
        requests: [{ originKey: key, url, widthPx: 64 }],
      });
    }
  });

  test.each([
    [{ external: [] }, 'external'],
    [{ external: url }, 'external'],
    [{ external: ['media.example.org/cat.png'] }, 'external.0'],
    [{ external: [url, 'ftp://media.example.org/'] }, 'external.1'],
    [{ external: ['https://media.example.org/\n'] }, 'external.0'],
    [{ assets: ['external/cat'] }, 'assets.0'],
    [{ prefix: 'external/cat/' }, 'prefix'],
    [{ paths: ['/external/x'] }, 'paths.0'],
    [{ external: [url], assets: [key] }, ''],
  ])('is not %j', (order, path) => {
    expect(() => parsePurgeOrder(order)).toThrow(
      expect.objectContaining({
        code: 'INVALID_FORM_BODY',
        faults: [expect.objectContaining({ path })],
      }),
    );
  });
});
