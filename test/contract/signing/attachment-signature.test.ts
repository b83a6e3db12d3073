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
const hm = '50d4fdaac7baeb3355acd293d0629d46ce80dd28a65b27b217773c7e84677336';
const endsAtSeconds = 0x69224180;
const beforeEndMs = endsAtSeconds * 1000 - 1;

const hmacOf = (message: string) => createHmac('sha256', first).update(message).digest('hex');
const judge = (query: string, nowMs = beforeEndMs, of = key) =>
  judgeSignature(query, of, signing, nowMs);

/** What docs/attachment-vectors.json has is not said again here. */
describe('the signature of an attachment', () => {
  test('is valid until it ends', () => {
    const query = `ex=${ex}&is=${is}&hm=${hm}`;
    expect(judge(query)).toEqual({ verdict: 'valid', endsAtSeconds });
    expect(judge(query, beforeEndMs + 1)).toEqual({ verdict: 'expired', endsAtSeconds });
    expect(judge(query, 0).verdict).toBe('valid');
  });

  test('of a data export never ends', () => {
    const ofExport = hmacOf(`attachment-url-v1\n00000000\n${is}\ndp\n${key}`);
    const verdict = { verdict: 'valid', endsAtSeconds: Number.POSITIVE_INFINITY };
    expect(judge(`ex=0&is=${is}&uc=dp&hm=${ofExport}`, Number.MAX_SAFE_INTEGER)).toEqual(verdict);
    // Nothing else is for ever.
    const without = hmacOf(`attachment-url-v1\n00000000\n${is}\n\n${key}`);
    expect(judge(`ex=00000000&is=${is}&hm=${without}`).verdict).toBe('expired');
  });

  test('knows the uses apart', () => {
    expect(judge(`ex=0&is=${is}&uc=dp&hm=${hm}`).verdict).toBe('mismatch');
    const ofExport = hmacOf(`attachment-url-v1\n${ex}\n${is}\ndp\n${key}`);
    expect(judge(`ex=${ex}&is=${is}&hm=${ofExport}`).verdict).toBe('mismatch');
  });

  test('has its place anywhere in the query', () => {
    expect(judge(`width=10&hm=${hm}&x&is=${is}&&format=webp&ex=${ex}`).verdict).toBe('valid');
  });

  test.each([
    ['another key', 'attachments/155369344/155369345/cat_picture.png'],
    ['another channel', 'attachments/155369343/155369345/cat picture.png'],
  ])('is not that of %s', (_, of) => {
    const query = `ex=${ex}&is=${is}&hm=${hm}`;
    expect(judge(query, beforeEndMs, of)).toEqual({ verdict: 'mismatch', endsAtSeconds });
  });

  test('that is of nobody is a mismatch, ended or not', () => {
    const query = `ex=${ex}&is=${is}&hm=${'0'.repeat(64)}`;
    expect(judge(query).verdict).toBe('mismatch');
    expect(judge(query, beforeEndMs + 1).verdict).toBe('mismatch');
  });

  test.each(['', 'width=10', 'EX=1&hm2=3', 'x=ex&is', 'format=webp&x=hm'].map((query) => [query]))(
    'is missing in ?%s',
    (query) => {
      // A name without a value is one that is spelled otherwise.
      const verdict = query.endsWith('is') ? 'malformed' : 'missing';
      expect(judge(query)).toEqual({ verdict, endsAtSeconds: undefined });
    },
  );

  test.each([
    `is=${is}&hm=${hm}`,
    `ex=${ex}&hm=${hm}`,
    'uc=dp',
    `ex=${ex}&is=${is}&hm=${hm}&hm=${hm}`,
    `ex=${ex}&is=${is}&hm=${hm}&h%6D=${hm}`,
    `ex=%36${ex.slice(1)}&is=${is}&hm=${hm}`,
    `ex=0${ex}&is=${is}&hm=${hm}`,
    `ex=${ex}&is=${is.toUpperCase()}&hm=${hm}`,
    `ex=${ex}&is=${is}&hm=${hm.slice(1)}`,
    `ex=${ex}&is=${is}&hm=${hm}0`,
    `ex=${ex}&is=${is}&hm=${hm}%0A`,
    `ex=+${ex.slice(1)}&is=${is}&hm=${hm}`,
    `ex=${ex}&is=${is}&hm=`,
    `ex=${ex}&is=${is}&hm`,
    `ex=${ex}&is=${is}&uc=dp&hm=${hm}`,
    `ex=0&is=0&uc=dp&hm=${hm}`,
  ])('is malformed in ?%s', (query) => {
    expect(judge(query)).toEqual({ verdict: 'malformed', endsAtSeconds: undefined });
  });

  test('is bound to its domain', () => {
    const other = { ...signing, domain: 'another-platform' };
    const query = `ex=${ex}&is=${is}&hm=${hmacOf(`another-platform\n${ex}\n${is}\n\n${key}`)}`;
    expect(judgeSignature(query, key, other, beforeEndMs).verdict).toBe('valid');
    expect(judge(query).verdict).toBe('mismatch');
  });
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

  test('is the same for all who ask in the same half of a day, and holds for as long again', () => {
    const [end = 0] = timesOf(sign(madeAtMs));
    expect(sign(madeAtMs + HALF_DAY_MS - 1_000)).toBe(sign(madeAtMs));
    expect(end * 1000 - (madeAtMs + HALF_DAY_MS - 1_000)).toBeGreaterThanOrEqual(HALF_DAY_MS);
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
