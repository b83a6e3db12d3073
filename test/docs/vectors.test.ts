import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { canonicalUrlOf } from '../../src/contract/external-url.ts';
import {
  checkSignature,
  signatureVerdicts,
} from '../../src/contract/signing/attachment-signature.ts';
import { verifyExternalPath } from '../../src/contract/signing/external-path.ts';
import { checkCapability, readRelayKey } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import type { OriginalWriter } from '../../src/pipeline/originals/original-writer.ts';
import { attachmentVectors } from '../../tools/documents/attachment-vectors.ts';
import { externalVectors } from '../../tools/documents/external-vectors.ts';
import { uploadVectors } from '../../tools/documents/upload-vectors.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { useTestApp } from '../support/test-app.ts';

describe('the vectors of attachments', () => {
  const { domain, signed, judged } = attachmentVectors;
  const signing = { keys: new SigningKeys(attachmentVectors.keys), domain };
  const verify = (url: string, at: number): string => {
    const [path = '', query = ''] = url.split(/\?(.*)/s);
    return checkSignature(query, decodeURIComponent(path.slice(1)), signing, at * 1000).verdict;
  };

  test('are valid from issue to expiry', () => {
    for (const { now, url } of signed) {
      const end = Number.parseInt(/ex=(\w+)/.exec(url)?.[1] ?? '', 16);
      expect(end - now).toBeGreaterThan(12 * 3_600 - 1);
      expect(end - now).toBeLessThanOrEqual(24 * 3_600);
      const verdicts = [now, end - 1, end].map((at) => verify(url, at));
      expect(verdicts).toEqual(['valid', 'valid', 'expired']);
    }
  });

  test('have the documented verdicts', () => {
    for (const { why, at, verdict, url } of judged) expect(verify(url, at), why).toBe(verdict);
    const verdicts = new Set(judged.map(({ verdict }) => verdict));
    expect([...verdicts].sort()).toEqual([...signatureVerdicts].sort());
    // With another domain, the URL belongs to another platform.
    const other = judged.find(({ why }) => why === 'another domain') ?? expect.fail();
    signing.domain = 'other';
    expect(verify(other.url, other.at)).toBe('valid');
  });
});

test('the vectors of external media have the documented results', () => {
  const { accepted, unauthorized, forbidden } = externalVectors;
  const keys = new SigningKeys(externalVectors.keys);
  for (const { url, canonical, opaque, segmented } of accepted) {
    expect(verifyExternalPath(opaque, keys)).toBe(url);
    expect(verifyExternalPath(segmented, keys)).toBe(canonical);
    expect(canonicalUrlOf(url)).toBe(canonical);
  }
  for (const { why, path } of unauthorized) {
    expect(verifyExternalPath(path, keys), why).toBeUndefined();
  }
  for (const { url, path } of forbidden) expect(verifyExternalPath(path, keys)).toBe(url);
});

describe('the vectors of uploads', () => {
  const { keys, bucket, signed, judged } = uploadVectors;

  test('have the documented signatures until they expire', () => {
    for (const { key, fields, path } of signed) {
      const [rawPath = '', capability = ''] = path.split('?t=');
      expect(readRelayKey(rawPath)).toBe(fields.k);
      const verify = (atSeconds: number) =>
        checkCapability(capability, new SigningKeys([key]), atSeconds);
      expect(verify(fields.e - 1)).toMatchObject({
        verdict: 'valid',
        capability: { key: fields.k, expiresAtSeconds: fields.e },
      });
      expect(verify(fields.e)).toEqual({ verdict: 'expired' });
    }
  });

  /** An empty bucket that accepts everything, including parts of any upload. */
  const originalWriter: OriginalWriter = {
    write: async () => 'stored',
    writePart: async () => 'stored',
    has: async () => false,
    memoryBytesOf: () => 0,
  };

  test('have the documented statuses', async () => {
    // One key contains a comma, which separates keys in the variable.
    const directory = await useTemporaryDirectory();
    await directory.put('keys', keys.join('\n'));
    const settings = {
      STORAGE: 's3',
      S3_BUCKET: bucket,
      RELAY_SIGNING_KEYS_FILE: join(directory.path, 'keys'),
    };
    let nowSeconds = 0;
    const wallClock = () => nowSeconds * 1000;
    const app = await useTestApp({ settings, originalWriter, wallClock });
    for (const { why, at, status, path } of judged) {
      nowSeconds = at;
      const response = await app.send('PUT', path, { 'Content-Length': '0' });
      expect(response.status, why).toBe(status);
    }
  });
});
