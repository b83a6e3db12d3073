import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import {
  type RelayCapability,
  signCapability,
} from '../../../src/contract/signing/relay-capability.ts';
import { formatRelayPath } from '../../../src/contract/signing/relay-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import type { RequestLine } from '../../../src/telemetry/request-log.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';
import { createTestApp, type TestApp, type TestAppOptions } from '../test-app.ts';

export const RELAY_KEY = 'an-example-key-of-thirty-two-bytes-or-more';
export const relayKeys = new SigningKeys([RELAY_KEY]);

/** A capability that lasts for ten minutes and permits nothing special. */
export function capabilityOf(
  key: string,
  terms: Partial<RelayCapability> = {},
  keys = relayKeys,
): string {
  return signCapability(
    {
      key,
      bucket: undefined,
      contentType: undefined,
      maxBytes: undefined,
      expiresAtSeconds: Math.floor(Date.now() / 1000) + 600,
      part: undefined,
      replaces: false,
      ...terms,
    },
    keys,
  );
}

/** The target of an upload that is permitted. */
export function uploadTarget(key: string, terms: Partial<RelayCapability> = {}): string {
  return formatRelayPath(key, capabilityOf(key, terms));
}

/** The service with uploads into a folder. */
export interface RelayApp {
  readonly app: TestApp;
  readonly port: number;
  readonly folder: string;
  readonly requests: readonly RequestLine[];
  /** All files below the folder, be they originals or not. */
  readonly list: () => Promise<readonly string[]>;
  readonly read: (key: string) => Promise<Buffer>;
  /** Puts an original there, past the service. */
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts it on a free port. */
export async function startRelayApp({
  settings = {},
  ...parts
}: TestAppOptions = {}): Promise<RelayApp> {
  const { path: folder, put, list, remove } = await makeTemporaryFolder();
  const app = await createTestApp({
    ...parts,
    settings: { RELAY_SIGNING_KEYS: RELAY_KEY, STORAGE_DIR: folder, ...settings },
    origin: await createFilesystemOrigin(folder),
    logged: 'info',
  });
  return {
    app,
    port: await app.listen(),
    folder,
    requests: app.requests,
    list,
    read: (key) => readFile(join(folder, key)),
    put,
    close: async () => {
      await app.close();
      await remove();
    },
  };
}

/** The same, until the end of the test. */
export async function useRelayApp(options?: TestAppOptions): Promise<RelayApp> {
  const relay = await startRelayApp(options);
  onTestFinished(relay.close);
  return relay;
}
