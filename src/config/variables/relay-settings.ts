import { setting, type ValuesOf } from '../setting.ts';
import { bytes, integer, MEBIBYTE } from '../setting-forms.ts';
import { keySettings, readKeys } from './key-settings.ts';

/** Uploads at the same time (contract §10). */
const MAX_UPLOADS = 64;

/** Connections to the bucket beside those of uploads: looks for objects, and uploads that are taken back. */
const OTHER_CONNECTIONS = 16;

/** Connections, or files, that the storage has open for uploads. */
export const RELAY_CONNECTIONS = MAX_UPLOADS + OTHER_CONNECTIONS;

/** A client slower than 16 KiB/s over 30 s is cut off (contract §10). */
const WINDOW_MS = 30_000;
const WINDOW_BYTES = 30 * 16 * 1024;

/** How often the pace of uploads is looked at, in milliseconds. */
const SWEEP_INTERVAL_MS = 1_000;

/** The variables of uploads: contract §10. */
export const relayTable = {
  ...keySettings(
    'RELAY_SIGNING_KEYS',
    'what signs the capabilities of uploads, which are a 404 without it: any of the keys is accepted',
  ),
  RELAY_MAX_BYTES: setting(
    // What S3 takes in one request is no more.
    integer(1, 5 * 1024 * MEBIBYTE, 'bytes'),
    500 * MEBIBYTE,
    'largest upload, whatever its capability allows',
  ),
  RELAY_MEMORY_BYTES: setting(
    bytes(8 * MEBIBYTE),
    128 * MEBIBYTE,
    'memory for uploads to S3 that do not tell their length, 8 MiB each; more get a 503',
  ),
};

/** The values that uploads depend on. */
type Values = ValuesOf<typeof relayTable> & {
  readonly ORIGIN_FIRST_BYTE_TIMEOUT_MS: number;
  readonly ORIGIN_TIMEOUT_MS: number;
};

/** How uploads are authorised, stored and bounded; `undefined`: there are none. */
export function readRelay(values: Values) {
  const keys = readKeys(values, 'RELAY_SIGNING_KEYS');
  if (keys === undefined) return undefined;
  return {
    keys,
    maxConnections: RELAY_CONNECTIONS,
    limits: {
      maxUploads: MAX_UPLOADS,
      maxBytes: values.RELAY_MAX_BYTES,
      memoryBytes: values.RELAY_MEMORY_BYTES,
      windowMs: WINDOW_MS,
      windowBytes: WINDOW_BYTES,
      storageTimeoutMs: values.ORIGIN_TIMEOUT_MS,
      lookTimeoutMs: values.ORIGIN_FIRST_BYTE_TIMEOUT_MS,
      sweepIntervalMs: SWEEP_INTERVAL_MS,
    },
  };
}
