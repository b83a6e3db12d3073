import type { RelayCapability } from '../../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { formatRelayPath, signCapabilityText } from '../../../tools/documents/upload-vectors.ts';
import { openDirectoryStorage } from '../directory-storage.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { type TestAppOptions, useTestApp } from '../test-app.ts';

export const RELAY_KEY = 'an-example-key-of-thirty-two-bytes-or-more';
const relayKeys = new SigningKeys([RELAY_KEY]);

/** Returns a capability, by default valid for ten minutes and without optional terms. */
export function capabilityOf(
  key: string,
  terms: Partial<RelayCapability> = {},
  keys = relayKeys,
): string {
  const { bucket, contentType, maxBytes, expiresAtSeconds, part, replaces, stripsMetadata } = terms;
  const fields = {
    ...{ b: bucket, k: terms.key ?? key, m: 'put', ct: contentType, mb: maxBytes },
    e: expiresAtSeconds ?? Math.floor(Date.now() / 1000) + 600,
    ...{ u: part?.uploadId, p: part?.partNumber, o: replaces, s: stripsMetadata },
  };
  return signCapabilityText(JSON.stringify(fields), keys);
}

/** Returns the target of a permitted upload. */
export function uploadTarget(key: string, terms: Partial<RelayCapability> = {}): string {
  return formatRelayPath(key, capabilityOf(key, terms));
}

export type RelayApp = Awaited<ReturnType<typeof useRelayApp>>;

/** Starts the service with uploads into a directory, on a free port, until the end of the test or file. */
export async function useRelayApp({ settings = {}, ...parts }: TestAppOptions = {}) {
  const { path: directory, put, list } = await useTemporaryDirectory();
  const app = await useTestApp({
    ...parts,
    settings: { RELAY_SIGNING_KEYS: RELAY_KEY, STORAGE_DIR: directory, ...settings },
    origin: (await openDirectoryStorage(directory)).origin,
    logged: 'info',
  });
  return {
    app,
    port: await app.listen(),
    directory,
    /** Lists all files below the directory, including temporary files. */
    list,
    /** Writes an original without the service. */
    put,
  };
}
