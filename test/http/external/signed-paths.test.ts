import { describe, expect, test } from 'vitest';
import {
  formatExternalPath,
  formatSegmentedTarget,
  signTarget,
} from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { parseAnswer, sendBytes } from '../../support/http/raw-http.ts';
import type { WireResponse } from '../../support/http/wire-response.ts';
import { shareTestApp } from '../../support/test-app.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const former = 'the-key-of-last-month-which-still-verifies';
const keys = new SigningKeys([key]);
const url = 'https://media.example.org/a%20b/cat.png?w=1&h=2';
const signed = formatExternalPath(url, keys);

const app = shareTestApp({ settings: { EXTERNAL_SIGNING_KEYS: `${key},${former}` } });
const withoutKeys = shareTestApp();

/**
 * Asks with a parameter that is wrong: the response is a 400 where the signature is right, whatever would become of
 * the URL, and nothing is fetched.
 */
const ask = (target: string, method = 'GET'): Promise<WireResponse> => app.send(method, target);

const codeOf = ({ body }: WireResponse): string => JSON.parse(body.toString()).code;

function expectUnauthorized(response: WireResponse): void {
  expect([response.status, codeOf(response)]).toEqual([401, 'UNAUTHORIZED']);
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.headers['www-authenticate']).toBeUndefined();
  expect(response.headers['cache-status']).toBeUndefined();
  expect(response.headers['server-timing']).toBeUndefined();
}

describe('the path of external media', () => {
  test.each([
    ['opaque', signed],
    ['segmented', signTarget(formatSegmentedTarget(url), keys)],
    ['signed with another of the keys', formatExternalPath(url, new SigningKeys([former]))],
    ['without a path in the URL', signTarget('https/media.example.org', keys)],
    ['with dots and slashes', signTarget('https/a.example//x/../%2e%2e/./y//', keys)],
    ['with escapes that no router can decode', signTarget('https/a.example/%2F/%zz%E9%', keys)],
    ['encoded twice', signTarget('%3Fa%253Db/https/a.example/%252e', keys)],
    ['with what other URLs keep for themselves', signTarget("https/a.example/:x*;'[](){}|^", keys)],
    ['of a word of another path', signTarget('avatars/1/ab12.webp', keys)],
    ['of no URL', signTarget('v2/!', keys)],
    ['of nothing', signTarget('', keys)],
    ['as an absolute target', `http://cdn.example${signed}`],
  ])('is verified as it came: %s', async (_, path) => {
    const response = await ask(`${path}?width=0&height=x&size=1`);
    expect([response.status, codeOf(response)]).toEqual([400, 'INVALID_FORM_BODY']);
    const { errors } = JSON.parse(response.body.toString());
    expect(errors.map(({ path }: { path: string }) => path)).toEqual(['width', 'height']);
  });

  test.each([
    ['nothing at all', '/external/'],
    ['no target', '/external/x'],
    ['no signature', '/external//https/a.example/'],
    ['another word for one', '/external/unsafe/https/a.example/'],
    ['one that is padded', signed.replace(/^(\/external\/[^/]+)/, '$1=')],
    ['one of a foreign key', formatExternalPath(url, new SigningKeys(['x'.repeat(32)]))],
    ['another target', signed.slice(0, -1)],
    ['a slash too many', `${signed}/`],
    ['a slash encoded', signed.replace('/v2/', '%2Fv2/')],
    ['a letter encoded', signed.replace('/v2/', '/%76%32/')],
  ])('is a 401 with %s, before all else', async (_, path) => {
    const logged = app.log.entries.length;
    for (const query of ['', '?width=0', '?width=64&format=webp']) {
      expectUnauthorized(await ask(path + query));
    }
    expectUnauthorized(await app.send('GET', path, { Range: 'bytes=0-1', 'If-None-Match': '*' }));
    const { status, headers, body } = await ask(path, 'HEAD');
    expect([status, headers['cache-control'], body.length]).toEqual([401, 'no-store', 0]);
    expect(app.log.entries.length).toBe(logged);
  });

  test('is a path like others for other methods', async () => {
    for (const path of [signed, '/external/', '/external/x/y']) {
      expect((await ask(path, 'OPTIONS')).status).toBe(204);
      expect((await ask(path, 'POST')).status).toBe(405);
      const unknown = parseAnswer(
        await sendBytes(await app.listen(), `BREW ${path} HTTP/1.1\r\nHost: x\r\n\r\n`),
      );
      expect(unknown.status).toBe(405);
    }
    expect((await ask('/external', 'POST')).status).toBe(404);
  });

  test.each(['/external', '/%65xternal/x/y', '//external/x/y', '/External/x/y'])(
    'is not %s',
    async (path) => {
      const response = await ask(path);
      expect([response.status, codeOf(response)]).toEqual([404, 'NOT_FOUND']);
    },
  );

  test('is none where no key is set', async () => {
    for (const path of ['/external/', '/external/x/y', signed]) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const response = await withoutKeys.send(method, `${path}?width=0`);
        expect([response.status, codeOf(response)]).toEqual([404, 'NOT_FOUND']);
        expect(response.headers['cache-control']).toBe('public, max-age=30');
      }
    }
  });
});
