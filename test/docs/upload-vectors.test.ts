import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyCapability } from '../../src/contract/signing/relay-capability.ts';
import { readRelayKey } from '../../src/contract/signing/relay-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import type { OriginalWriter } from '../../src/pipeline/originals/original-writer.ts';
import { formatUploadVectors, type UploadVectors } from '../../tools/upload-vectors.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

/** `npm run vectors` writes it anew. */
const FILE = 'docs/upload-vectors.json';

const text = formatUploadVectors();
const vectors: UploadVectors = JSON.parse(text);

/** A bucket that has nothing and takes everything, parts of any upload included. */
const writer: OriginalWriter = {
  write: async () => 'stored',
  writePart: async () => 'stored',
  has: async () => false,
  heldBytesOf: () => 0,
};

describe('the vectors', () => {
  let nowSeconds = 0;
  let app: TestApp;
  let removeFolder: () => Promise<void>;
  let port: number;
  beforeAll(async () => {
    const folder = await makeTemporaryFolder();
    removeFolder = folder.remove;
    // One of the keys has a comma, which ends a key in the variable itself.
    const keyFile = join(folder.path, 'keys');
    writeFileSync(keyFile, vectors.keys.join('\n'));
    app = await createTestApp({
      settings: { STORAGE: 's3', S3_BUCKET: vectors.bucket, RELAY_SIGNING_KEYS_FILE: keyFile },
      originalWriter: writer,
      wallClock: () => nowSeconds * 1000,
    });
    port = await app.listen();
  });
  afterAll(async () => {
    await app?.close();
    await removeFolder?.();
  });

  test('are the committed file', () => {
    if (process.env.UPDATE_VECTORS === '1') writeFileSync(FILE, text);
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  test('are signed as they say, until they end', () => {
    for (const { key, fields, path } of vectors.signed) {
      const [rawPath = '', capability = ''] = path.split('?t=');
      expect(readRelayKey(rawPath)).toBe(fields.k);
      const verify = (atSeconds: number) =>
        verifyCapability(capability, new SigningKeys([key]), atSeconds);
      expect(verify(fields.e - 1)).toMatchObject({ key: fields.k, expiresAtSeconds: fields.e });
      expect(verify(fields.e)).toBeUndefined();
    }
  });

  test('are let in and refused as they say', async () => {
    for (const { why, at, status, path } of vectors.judged) {
      nowSeconds = at;
      const response = await sendRaw(port, 'PUT', path, { 'Content-Length': '0' });
      expect(response.status, why).toBe(status);
    }
  });
});
