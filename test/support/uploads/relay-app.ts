import type { RelayCapability } from '../../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { formatRelayPath, signCapabilityText } from '../../../tools/documents/upload-vectors.ts';
import { openDirectoryStorage } from '../directory-storage.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { type TestAppOptions, useTestApp } from '../test-app.ts';

export const RELAY_KEY = 'an-example-key-of-thirty-two-bytes-or-more';
const relayKeys = new SigningKeys([RELAY_KEY]);

/** A capability that lasts for ten minutes and permits nothing special. */
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

/** The target of an upload that is permitted. */
export function uploadTarget(key: string, terms: Partial<RelayCapability> = {}): string {
  return formatRelayPath(key, capabilityOf(key, terms));
}

/** The service with uploads into a directory. */
export type RelayApp = Awaited<ReturnType<typeof useRelayApp>>;

/** Starts it on a free port, until the end of the test, or of the file's tests. */
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
    /** All files below the directory, be they originals or not. */
    list,
    /** Puts an original there, past the service. */
    put,
  };
}
