import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type AttachmentSigning,
  judgeSignature,
  signAttachment,
  timeOfSnowflakeMs,
} from '../../../src/contract/signing/attachment-signature.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';

const first = 'an-example-key-of-thirty-two-bytes-or-more';
const signing: AttachmentSigning = {
  keys: new SigningKeys([first]),
  domain: 'attachment-url-v1',
};

/** The example of contract §9. */
const key = 'attachments/155369344/155369345/cat picture.png';
const ex = '69224180';
const is = '6920f000';
const beforeEndMs = 0x69224180 * 1000 - 1;

const hmacOf = (message: string) => createHmac('sha256', first).update(message).digest('hex');
const judge = (query: string, nowMs = beforeEndMs, of = key) =>
  judgeSignature(query, of, signing, nowMs);

/** What docs/attachment-vectors.json has, and what conversations of test/surface draw, is not said again here. */
test('the signature of an attachment is bound to its domain', () => {
  const other = { ...signing, domain: 'another-platform' };
  const query = `ex=${ex}&is=${is}&hm=${hmacOf(`another-platform\n${ex}\n${is}\n\n${key}`)}`;
  expect(judgeSignature(query, key, other, beforeEndMs).verdict).toBe('valid');
  expect(judge(query).verdict).toBe('mismatch');
});

describe('signing', () => {
  const HALF_DAY_MS = 12 * 3_600_000;
  /** Made on 2024-01-01 at 07:30:00.500. */
  const madeAtMs = Date.UTC(2024, 0, 1, 7, 30, 0, 500);
  const id = String(BigInt(madeAtMs - Date.UTC(2015, 0)) << 22n);
  const keyOfMade = `attachments/1/${id}/ä b?.png`;
  const sign = (nowMs: number) => signAttachment(keyOfMade, signing, nowMs) ?? expect.fail();
  const timesOf = (path: string) => {
    const query = new URLSearchParams(path.slice(path.indexOf('?')));
    return ['ex', 'is'].map((name) => Number.parseInt(query.get(name) ?? '', 16));
  };

  test('makes what verifies', () => {
    const path = sign(madeAtMs);
    const [, parameters = ''] = path.split('?');
    expect(path).toMatch(
      new RegExp(
        `^/attachments/1/${id}/%C3%A4%20b%3F\\.png\\?ex=[0-9a-f]{8}&is=[0-9a-f]{8}&hm=[0-9a-f]{64}$`,
      ),
    );
    expect(judge(parameters, madeAtMs, keyOfMade).verdict).toBe('valid');
  });

  test('takes the times of issue from a grid that begins with the attachment', () => {
    const madeAt = Math.floor(madeAtMs / 1000);
    for (const [nowMs, steps] of [
      [madeAt * 1000, 0],
      [madeAt * 1000 + HALF_DAY_MS - 1, 0],
      [madeAt * 1000 + HALF_DAY_MS, 1],
      [madeAt * 1000 + 100 * HALF_DAY_MS + 7, 100],
      // A clock that is behind, or an id of another one's making.
      [madeAt * 1000 - 1, -1],
    ] as const) {
      const issuedAt = madeAt + (steps * HALF_DAY_MS) / 1000;
      expect(timesOf(sign(nowMs))).toEqual([issuedAt + 86_400, issuedAt]);
    }
  });

  test('is the same for all who ask in the same half of a day', () => {
    expect(sign(madeAtMs + HALF_DAY_MS - 1_000)).toBe(sign(madeAtMs));
  });

  test.each(['avatars/1/ab12', 'attachments/1/2', 'attachments/1/02/a.png', 'attachments/1/2/..'])(
    'has none for %s',
    (of) => {
      expect(signAttachment(of, signing, madeAtMs)).toBeUndefined();
    },
  );

  test('reads the time of a snowflake', () => {
    expect(timeOfSnowflakeMs('0')).toBe(Date.UTC(2015, 0));
    expect(timeOfSnowflakeMs(id)).toBe(madeAtMs);
    expect(timeOfSnowflakeMs('18446744073709551615')).toBe(Date.UTC(2015, 0) + 2 ** 42 - 1);
  });
});
