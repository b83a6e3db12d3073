import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { canonicalUrlOf } from '../../../src/contract/external-url.ts';
import {
  formatOpaqueTarget,
  formatSegmentedTarget,
  signTarget,
} from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { type Ask, createClient } from '../../support/http/http-client.ts';
import { shareTestApp } from '../../support/test-app.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const keys = new SigningKeys([key]);

const app = shareTestApp({ settings: { EXTERNAL_SIGNING_KEYS: key } });
let ask: Ask;

beforeAll(async () => {
  ask = createClient(await app.listen());
});

const urls = fc
  .tuple(
    fc.webUrl({ withQueryParameters: true }),
    fc.array(fc.constantFrom('/..', '/%2F', '//', '/%', '/*')),
  )
  .map(([url, more]) => url.replace(/(?=\?|$)/, more.join('')))
  .filter((url) => canonicalUrlOf(url) !== undefined);

/** Both forms of a URL, signed. */
const paths = fc.tuple(urls, fc.boolean()).map(([url, isOpaque]) => {
  const canonical = canonicalUrlOf(url) ?? '';
  return signTarget(isOpaque ? formatOpaqueTarget(url) : formatSegmentedTarget(canonical), keys);
});

/** A parameter that is wrong: a 400 says that the signature is right, and nothing is fetched. */
const statusOf = async (path: string): Promise<number> => (await ask(`${path}?width=0`)).status;

describe('through the router, for any URL,', () => {
  test('both forms verify', async () => {
    await fc.assert(
      fc.asyncProperty(paths, async (path) => {
        expect(await statusOf(path)).toBe(400);
      }),
      { numRuns: 1_000 },
    );
  });

  test('a byte of signature or target that is changed is a 401', async () => {
    // What HTTP lets a target have; other bytes never get as far as that.
    const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    await fc.assert(
      fc.asyncProperty(paths, fc.nat(), visible, async (path, place, character) => {
        const start = '/external/'.length;
        const at = start + (place % (path.length - start));
        const changed = path.slice(0, at) + character + path.slice(at + 1);
        expect(await statusOf(changed)).toBe(changed === path ? 400 : 401);
      }),
      { numRuns: 2_000 },
    );
  });
});
