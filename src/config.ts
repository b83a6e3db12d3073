import { statSync } from 'node:fs';
import { z } from 'zod';
import { planConnections } from './connection-budget.ts';
import { countCores } from './cpu-cores.ts';
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
  only,
  parseProxyList,
  proxyList,
  readableFile,
  regionName,
  seconds,
} from './setting-forms.ts';
import {
  mayMixUp,
  RESULT_CONNECTIONS,
  readResultStore,
  readStorage,
  SAMPLE_FOLDER,
} from './storage-settings.ts';
import { findTlsFault, readTls } from './tls-pair.ts';
import { splitWorkers } from './worker-split.ts';

/** Environment variables, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** All faults of the configuration at once; `message` has one line per variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Variables whose values are never shown. */
const SECRETS = /SECRET|TOKEN|PASSWORD/;

/** What workers inherit: how to run, and no secret. */
const WORKER_VARIABLES = ['PATH', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'MALLOC_CONF'];

/** The channel to it, and another one for a moment while it is replaced. */
const FILES_PER_WORKER = 2;

const MEBIBYTE = 1024 * 1024;

/** Bodies of the origin that are open at once, unless set: to be transformed, and to be passed on. */
const MAX_READS = 64;
const MAX_STREAMS = 256;

/** How many requests may wait to read from the origin: each costs some kilobytes. */
const MAX_WAITING_FOR_ORIGIN = 1_024;

/**
 * Every variable that is read, with form and default: those of spec §7 as far as their parts are built,
 * and those for the numbers of §4 and §6. What would switch on a part that is not, is refused.
 */
const schema = z.object({
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
  EXPLORER: only('off', 'the explorer').default('off'),
  SHUTDOWN_GRACE_MS: milliseconds(20_000),
});

/** Names of all variables that are read; the README's table is tested against them. */
export const settingNames: readonly string[] = Object.keys(schema.shape);

type Values = z.infer<typeof schema>;

/** The service's configuration, one slice per consumer. */
export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the configuration, once, at boot. An empty variable counts as one that is not set.
 *
 * @throws ConfigError with every fault: name, expected form and the value received
 */
export function readConfig(environment: Environment) {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = schema.safeParse(given);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => formatFault(path.join('.'), message, given));
  if ((given.TLS_CERT_FILE === undefined) !== (given.TLS_KEY_FILE === undefined)) {
    const missing = given.TLS_CERT_FILE === undefined ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE';
    faults.push(formatFault(missing, 'a file, since the other half of the pair is set', given));
  }
  const tlsFault = findTlsFault(given.TLS_CERT_FILE, given.TLS_KEY_FILE);
  if (tlsFault !== undefined) {
    faults.push(formatFault('TLS_CERT_FILE', `a certificate with its key (${tlsFault})`, given));
  }
  if (given.STORAGE === 's3') {
    if (given.S3_BUCKET === undefined) {
      faults.push(formatFault('S3_BUCKET', 'the name of a bucket, since STORAGE is s3', given));
    }
  } else if (!isDirectory(given.STORAGE_DIR ?? SAMPLE_FOLDER)) {
    faults.push(formatFault('STORAGE_DIR', 'an existing folder', given));
  }
  if (parsed.success && parsed.data.ORIGINALS_MEMORY_BYTES < 2 * parsed.data.MAX_ORIGINAL_BYTES) {
    faults.push(formatFault('ORIGINALS_MEMORY_BYTES', 'at least twice MAX_ORIGINAL_BYTES', given));
  }
  if (given.RESULT_STORE === 'filesystem' && !isDirectory(given.RESULT_STORE_DIR ?? '')) {
    const form = 'an existing folder, since RESULT_STORE is filesystem';
    faults.push(formatFault('RESULT_STORE_DIR', form, given));
  }
  if (given.RESULT_STORE === 's3' && given.RESULT_S3_BUCKET === undefined) {
    const form = 'the name of a bucket, since RESULT_STORE is s3';
    faults.push(formatFault('RESULT_S3_BUCKET', form, given));
  }
  if (parsed.success && mayMixUp(parsed.data)) {
    const form = 'a prefix beside that of the originals, since both are in one bucket';
    faults.push(formatFault('RESULT_S3_PREFIX', form, given));
  }
  if (given.ADMIN_PORT !== undefined && given.ADMIN_TOKEN === undefined) {
    faults.push(formatFault('ADMIN_TOKEN', 'a token, since ADMIN_PORT is set', given));
  }
  const connections = planConnections(countOtherFiles(given));
  if (Number(given.MAX_CONNECTIONS) > connections.most) {
    const form = `at most ${connections.most}, for the limit of open files`;
    faults.push(formatFault('MAX_CONNECTIONS', form, given));
  }
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults.join('\n'));

  const values = parsed.data;
  const waiting = { maxWaiting: MAX_WAITING_FOR_ORIGIN, maxWaitMs: values.QUEUE_TIMEOUT_MS };
  const workers = splitWorkers(values.WORKERS === 0 ? countCores() : values.WORKERS);
  return Object.freeze({
    listen: { host: values.HOST, port: values.PORT },
    http: {
      trustProxy: parseProxyList(values.TRUST_PROXY),
      maxConnections: values.MAX_CONNECTIONS === 0 ? connections.byDefault : values.MAX_CONNECTIONS,
      tls: readTls(values.TLS_CERT_FILE, values.TLS_KEY_FILE),
      maxAgeSeconds: {
        media: values.MEDIA_MAX_AGE_SECONDS,
        defaultAvatar: values.DEFAULT_AVATAR_MAX_AGE_SECONDS,
        notFound: values.NOT_FOUND_MAX_AGE_SECONDS,
        refused: values.REFUSED_MAX_AGE_SECONDS,
      },
    },
    log: { level: values.LOG_LEVEL },
    storage: readStorage(values),
    resultStore: readResultStore(values),
    originLimits: {
      firstByteTimeoutMs: values.ORIGIN_FIRST_BYTE_TIMEOUT_MS,
      wholeBodyTimeoutMs: values.ORIGIN_TIMEOUT_MS,
      maxOriginalBytes: values.MAX_ORIGINAL_BYTES,
    },
    originReads: { ...waiting, slots: values.ORIGIN_MAX_READS },
    originStreams: { ...waiting, slots: values.ORIGIN_MAX_STREAMS },
    originalsMemoryBytes: values.ORIGINALS_MEMORY_BYTES,
    renderLimits: {
      maxInputPixels: values.MAX_INPUT_PIXELS,
      maxFrames: values.MAX_FRAMES,
      maxResultBytes: values.MAX_RESULT_BYTES,
      timeoutMs: values.TRANSFORM_TIMEOUT_MS,
    },
    renderer: {
      workers,
      memoryBytes: values.WORKER_MEMORY_BYTES,
      environment: pick(given, WORKER_VARIABLES),
    },
    admission: {
      slots: workers,
      maxWaitingPerSlot: values.QUEUE_PER_WORKER,
      maxWaitMs: values.QUEUE_TIMEOUT_MS,
    },
    cache: {
      maxBytes: values.CACHE_MEMORY_BYTES,
      originalBytes: values.CACHE_ORIGINALS_BYTES,
    },
    versions: {
      freshForMs: values.CACHE_REVALIDATE_SECONDS * 1000,
      goneForMs: values.NOT_FOUND_MAX_AGE_SECONDS * 1000,
    },
    admin: readAdmin(values),
    shutdown: { graceMs: values.SHUTDOWN_GRACE_MS },
  });
}

/** Files that are open besides those of clients; not a number where a setting is none. */
function countOtherFiles(given: Environment): number {
  const workers = Number(given.WORKERS ?? countCores()) + 1;
  const storage =
    Number(given.ORIGIN_MAX_READS ?? MAX_READS) + Number(given.ORIGIN_MAX_STREAMS ?? MAX_STREAMS);
  const results = (given.RESULT_STORE ?? 'none') === 'none' ? 0 : RESULT_CONNECTIONS;
  return FILES_PER_WORKER * workers + storage + results;
}

function formatFault(name: string, form: string, given: Environment): string {
  const value = given[name];
  const received =
    value === undefined ? 'nothing' : SECRETS.test(name) ? '***' : formatValue(value);
  return `${name}: expected ${form} but received ${received}`;
}

/** Passwords in a URL are masked; they are a fault where they stand, but still somebody's. */
function formatValue(value: string): string {
  return `"${value.replace(/\/\/.*@/s, '//***@')}"`;
}

/** `undefined`: there is no admin listener. */
function readAdmin({ ADMIN_HOST: host, ADMIN_PORT: port, ADMIN_TOKEN: token }: Values) {
  return port < 0 || token === undefined ? undefined : { listen: { host, port }, token };
}

function pick(given: Environment, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])),
  );
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
