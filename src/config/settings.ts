import { z } from 'zod';
import {
  bearerToken,
  bucketName,
  bytes,
  choice,
  endpoint,
  hostName,
  integer,
  keyPrefix,
  milliseconds,
  proxyList,
  readableFile,
  regionName,
  seconds,
} from './setting-forms.ts';
import { SAMPLE_FOLDER } from './storage-settings.ts';
import { tracingForms } from './tracing-settings.ts';

/** Environment variables, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

const MEBIBYTE = 1024 * 1024;

/** Bodies of the origin that are open at once, unless set: to be transformed, and to be passed on. */
export const MAX_READS = 64;
export const MAX_STREAMS = 256;

/**
 * Every variable that is read, with form and default: those of spec §7, and those for the numbers of §4
 * and §6.
 */
export const settings = z.object({
  HOST: hostName.default('127.0.0.1'),
  PORT: integer(0, 65_535, '', 3000),
  TLS_CERT_FILE: readableFile.optional(),
  TLS_KEY_FILE: readableFile.optional(),
  TRUST_PROXY: proxyList.default('false'),
  MAX_CONNECTIONS: integer(1, 1_000_000, 'connections', 0),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'one of fatal, error, warn, info, debug, trace, silent',
    })
    .default('info'),

  STORAGE: choice('filesystem', 's3').default('filesystem'),
  STORAGE_DIR: z.string().default(SAMPLE_FOLDER),
  S3_BUCKET: bucketName.optional(),
  S3_ENDPOINT: endpoint.optional(),
  S3_REGION: regionName.default('us-east-1'),
  S3_FORCE_PATH_STYLE: choice('true', 'false').optional(),
  S3_PREFIX: keyPrefix.default(''),
  ORIGIN_CONNECT_TIMEOUT_MS: milliseconds(2_000),
  ORIGIN_FIRST_BYTE_TIMEOUT_MS: milliseconds(5_000),
  ORIGIN_TIMEOUT_MS: milliseconds(30_000),
  ORIGIN_MAX_READS: integer(1, 65_535, 'originals', MAX_READS),
  ORIGIN_MAX_STREAMS: integer(1, 65_535, 'attachments', MAX_STREAMS),

  MAX_ORIGINAL_BYTES: bytes(1, 50 * MEBIBYTE),
  MAX_INPUT_PIXELS: integer(1, 1_000_000_000, 'pixels', 100_000_000),
  MAX_FRAMES: integer(1, 100_000, 'frames', 1_024),
  MAX_RESULT_BYTES: bytes(1, 100 * MEBIBYTE),
  ORIGINALS_MEMORY_BYTES: bytes(1, 512 * MEBIBYTE),
  TRANSFORM_TIMEOUT_MS: milliseconds(15_000),
  WORKERS: integer(1, 1_024, 'processes', 0),
  WORKER_MEMORY_BYTES: bytes(256 * MEBIBYTE, 2_560 * MEBIBYTE),
  QUEUE_PER_WORKER: integer(0, 100_000, 'requests', 64),
  QUEUE_TIMEOUT_MS: milliseconds(5_000),

  CACHE_MEMORY_BYTES: bytes(0, 256 * MEBIBYTE),
  CACHE_ORIGINALS_BYTES: bytes(0, 64 * MEBIBYTE),
  CACHE_REVALIDATE_SECONDS: seconds(31_536_000, 300),
  RESULT_STORE: choice('none', 'filesystem', 's3').default('none'),
  RESULT_STORE_DIR: z.string().optional(),
  RESULT_STORE_MAX_BYTES: bytes(64 * MEBIBYTE, 10_240 * MEBIBYTE),
  RESULT_S3_BUCKET: bucketName.optional(),
  RESULT_S3_PREFIX: keyPrefix.default(''),
  MEDIA_MAX_AGE_SECONDS: seconds(31_536_000, 31_536_000),
  DEFAULT_AVATAR_MAX_AGE_SECONDS: seconds(31_536_000, 86_400),
  NOT_FOUND_MAX_AGE_SECONDS: seconds(31_536_000, 30),
  REFUSED_MAX_AGE_SECONDS: seconds(31_536_000, 300),

  ADMIN_HOST: hostName.default('127.0.0.1'),
  ADMIN_PORT: integer(0, 65_535, '', -1),
  ADMIN_TOKEN: bearerToken.optional(),
  EXPLORER: choice('on', 'off').optional(),
  SHUTDOWN_GRACE_MS: milliseconds(20_000),

  ...tracingForms,
});

/** Names of all variables that are read; the documents' tables are tested against them. */
export const settingNames: readonly string[] = Object.keys(settings.shape);

/** The values of all variables. */
export type Settings = z.infer<typeof settings>;
