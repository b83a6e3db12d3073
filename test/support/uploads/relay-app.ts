import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Environment } from '../../../src/config/setting.ts';
import {
  type RelayCapability,
  signCapability,
} from '../../../src/contract/signing/relay-capability.ts';
import { formatRelayPath } from '../../../src/contract/signing/relay-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import type { OriginalWriter } from '../../../src/pipeline/originals/original-writer.ts';
import type { UploadLimits } from '../../../src/pipeline/uploads/upload-service.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';
import { createTestApp, RecordingRequestLog, type TestApp } from '../test-app.ts';

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
  readonly requestLog: RecordingRequestLog;
  /** All files below the folder, be they originals or not. */
  readonly list: () => Promise<readonly string[]>;
  readonly read: (key: string) => Promise<Buffer>;
  /** Puts an original there, past the service. */
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
  readonly close: () => Promise<void>;
}

interface RelayAppOptions {
  readonly settings?: Environment;
  readonly uploadLimits?: Partial<UploadLimits>;
  readonly originalWriter?: OriginalWriter;
  readonly wallClock?: () => number;
}

/** Starts it on a free port. */
export async function startRelayApp({
  settings = {},
  ...parts
}: RelayAppOptions = {}): Promise<RelayApp> {
  const { path: folder, remove } = await makeTemporaryFolder();
  const requestLog = new RecordingRequestLog('info');
  const app = await createTestApp({
    ...parts,
    settings: { RELAY_SIGNING_KEYS: RELAY_KEY, STORAGE_DIR: folder, ...settings },
    origin: await createFilesystemOrigin(folder),
    requestLog,
  });
  return {
    app,
    port: await app.listen(),
    folder,
    requestLog,
    list: async () => {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
        .sort();
    },
    read: (key) => readFile(join(folder, key)),
    put: async (key, bytes) => {
      await mkdir(dirname(join(folder, key)), { recursive: true });
      await writeFile(join(folder, key), bytes);
    },
    close: async () => {
      await app.close();
      await remove();
    },
  };
}
