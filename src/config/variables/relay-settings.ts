import { memorySetting, setting, type ValuesOf } from '../setting.ts';
import { bytes, choice, MEBIBYTE } from '../setting-types.ts';
import { keySettings, readKeys } from './key-settings.ts';

/** Contract §10. */
const MAX_UPLOADS = 64;

/** For checks for existing objects, and removals of failed uploads. */
const OTHER_CONNECTIONS = 16;

export const RELAY_CONNECTIONS = MAX_UPLOADS + OTHER_CONNECTIONS;

/** An upload below 16 KiB/s over 30 s is aborted (contract §10). */
const WINDOW_MS = 30_000;
const WINDOW_BYTES = 30 * 16 * 1024;

const SWEEP_INTERVAL_MS = 1_000;

/** Contract §10. */
export const relayTable = {
  ...keySettings(
    'RELAY_SIGNING_KEYS',
    'signing keys of upload capabilities; without keys, uploads are a 404. Darkroom accepts signatures by all of them',
  ),
  RELAY_MAX_BYTES: setting(
    // S3 accepts at most 5 GiB in one request.
    bytes(1, 5 * 1024 * MEBIBYTE),
    500 * MEBIBYTE,
    'maximum size of an upload, regardless of its capability',
  ),
  RELAY_MEMORY_BYTES: memorySetting(
    'RELAY_MEMORY_BYTES',
    bytes(8 * MEBIBYTE),
    'memory for uploads to S3 without a declared length, 8 MiB each; more get a 503',
  ),
  RELAY_STRIP_METADATA: setting(
    choice('true', 'false'),
    'false',
    'whether uploads lose [metadata](contract.md#16-metadata-removal-at-upload) such as the position and the camera, unless `s` of the capability overrides it',
  ),
};

type Values = ValuesOf<typeof relayTable> & {
  readonly ORIGIN_FIRST_BYTE_TIMEOUT_MS: number;
  readonly ORIGIN_TIMEOUT_MS: number;
};

export function readRelay(values: Values) {
  const keys = readKeys(values, 'RELAY_SIGNING_KEYS');
  if (keys === undefined) return undefined;
  return {
    keys,
    stripsMetadata: values.RELAY_STRIP_METADATA === 'true',
    maxConnections: RELAY_CONNECTIONS,
    limits: {
      maxUploads: MAX_UPLOADS,
      maxBytes: values.RELAY_MAX_BYTES,
      memoryBytes: values.RELAY_MEMORY_BYTES,
      windowMs: WINDOW_MS,
      windowBytes: WINDOW_BYTES,
      storageTimeoutMs: values.ORIGIN_TIMEOUT_MS,
      existsTimeoutMs: values.ORIGIN_FIRST_BYTE_TIMEOUT_MS,
      sweepIntervalMs: SWEEP_INTERVAL_MS,
    },
  };
}
