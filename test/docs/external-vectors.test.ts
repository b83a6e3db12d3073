import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canonicalUrlOf } from '../../src/contract/external-url.ts';
import { verifyExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { type ExternalVectors, formatExternalVectors } from '../../tools/external-vectors.ts';

/** `npm run vectors` writes it anew. */
const FILE = 'docs/external-vectors.json';

const text = formatExternalVectors();
const vectors: ExternalVectors = JSON.parse(text);
const keys = new SigningKeys(vectors.keys);

describe('the vectors', () => {
  test('are the committed file', () => {
    if (process.env.UPDATE_VECTORS === '1') writeFileSync(FILE, text);
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  test('have the example of the contract', () => {
    expect(vectors.accepted[0]).toMatchObject({
      opaque:
        '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI',
      segmented:
        '/external/HoAtalP99iQo3nVDVQZM3oMKkTMch6_OkYyR4qlGur0/%3Fw%3D1%26h%3D2/https/media.example.org/a%20b/cat.png',
    });
  });

  test('are accepted and refused as they say', () => {
    for (const { url, canonical, opaque, segmented } of vectors.accepted) {
      expect(verifyExternalPath(opaque, keys)).toBe(url);
      expect(verifyExternalPath(segmented, keys)).toBe(canonical);
      expect(canonicalUrlOf(url)).toBe(canonical);
    }
    for (const { why, path } of vectors.unauthorized) {
      expect(verifyExternalPath(path, keys), why).toBeUndefined();
    }
    for (const { url, path } of vectors.forbidden) expect(verifyExternalPath(path, keys)).toBe(url);
    const signatures = vectors.accepted.map(({ opaque }) => opaque.split('/')[2] ?? '');
    for (const character of '-_') expect(signatures.join('')).toContain(character);
  });
});
