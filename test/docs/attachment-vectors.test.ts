import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  judgeSignature,
  signatureVerdicts,
} from '../../src/contract/signing/attachment-signature.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { type AttachmentVectors, formatAttachmentVectors } from '../../tools/attachment-vectors.ts';

/** `npm run vectors` writes it anew. */
const FILE = 'docs/attachment-vectors.json';

const text = formatAttachmentVectors();
const vectors: AttachmentVectors = JSON.parse(text);
const signing = { keys: new SigningKeys(vectors.keys), domain: vectors.domain };

function judge(url: string, at: number): string {
  const [path = '', query = ''] = url.split(/\?(.*)/s);
  const key = path.slice(1).split('/').map(decodeURIComponent).join('/');
  return judgeSignature(query, key, signing, at * 1000).verdict;
}

describe('the vectors', () => {
  test('are the committed file', () => {
    if (process.env.UPDATE_VECTORS === '1') writeFileSync(FILE, text);
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  test('are signed as they say, from the time to the end', () => {
    for (const { key, attachment, now, url } of vectors.signed) {
      const query = new URLSearchParams(url.slice(url.indexOf('?')));
      const [ex = '', is = ''] = ['ex', 'is'].map((name) => query.get(name) ?? '');
      const message = `${vectors.domain}\n${ex}\n${is}\n\n${attachment}`;
      expect(query.get('hm')).toBe(createHmac('sha256', key).update(message).digest('hex'));
      const end = Number.parseInt(ex, 16);
      expect(end - now).toBeGreaterThan(12 * 3_600 - 1);
      expect(end - now).toBeLessThanOrEqual(24 * 3_600);
      expect([now, end - 1, end].map((at) => judge(url, at))).toEqual([
        'valid',
        'valid',
        'expired',
      ]);
    }
  });

  test('are judged as they say', () => {
    for (const { why, at, verdict, url } of vectors.judged)
      expect(judge(url, at), why).toBe(verdict);
    const verdicts = new Set(vectors.judged.map(({ verdict }) => verdict));
    expect([...verdicts].sort()).toEqual([...signatureVerdicts].sort());
  });
});
