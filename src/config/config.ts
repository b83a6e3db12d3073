import { isIP } from 'node:net';
import type { ParseOptions } from '../contract/media-request.ts';
import { verifyExternalPath } from '../contract/signing/external-path.ts';
import { SigningKeys } from '../contract/signing/signing-keys.ts';
import {
  addMemory,
  countCores,
  findFilesFault,
  planConnections,
  planDecoder,
  planMemory,
  planWorkers,
  readMemoryBytes,
} from './machine-limits.ts';
import { readRelease } from './release.ts';
import type { Environment, Setting } from './setting.ts';
import { readSettings, readTls } from './setting-faults.ts';
import {
  findUnknownSettings,
  findUnusedSettings,
  type SettingWarning,
} from './setting-warnings.ts';
import { type Settings, settingNames, settingTable } from './settings.ts';
import { BLOCKLIST_CONNECTIONS, readCdn } from './variables/block-settings.ts';
import { EXTERNAL_CONNECTIONS, readExternal } from './variables/external-settings.ts';
import { hasKeys, keySettingNames, readAttachments, readKeys } from './variables/key-settings.ts';
import { readCompatibility, readInternal } from './variables/platform-settings.ts';
import { RELAY_CONNECTIONS, readRelay } from './variables/relay-settings.ts';
import { readVideoDecoder } from './variables/rendering-settings.ts';
import {
  RESULT_CONNECTIONS,
  readBlocklist,
  readResultStore,
  readStorage,
  readUploads,
} from './variables/storage-settings.ts';
import { findProtocolFault, readTracing } from './variables/tracing-settings.ts';

/** `message` has one line for each invalid variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly warnings: readonly SettingWarning[];

  constructor(message: string, warnings: readonly SettingWarning[] = []) {
    super(message);
    this.warnings = warnings;
  }
}

/** Environment variables that workers inherit; they contain no secrets. */
const WORKER_VARIABLES = ['PATH', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'MALLOC_CONF'];

const WORKERS_PER_CORE = 2;

const DECODERS_PER_CORE = 1;

/** A worker and its replacement have one channel each. */
const FILES_PER_WORKER = 2;

/** Each waiting request takes some kilobytes. */
const MAX_WAITING_FOR_ORIGIN = 1_024;

export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the configuration. An empty variable counts as unset, except with `mayBeEmpty`.
 *
 * @param memoryBytes memory of the machine or container, for the defaults
 * @throws ConfigError with every fault: name, expected syntax and received value
 */
export function readConfig(variables: Environment, memoryBytes = readMemoryBytes()) {
  const environment: Readonly<Record<string, string>> = Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value || (value === '' && mayBeEmpty(name)) ? [[name, value]] : [],
    ),
  );
  const connections = planConnections(countReservedFiles(environment));
  const cores = Number(environment.WORKERS ?? countCores());
  const planned = planMemory(memoryBytes, cores);
  const { values, faults } = readSettings(environment, connections.max, planned.defaults);
  const allFaults = [
    ...faults,
    findFilesFault() ?? [],
    findProtocolFault(environment) ?? [],
  ].flat();
  const unknownSettings = findUnknownSettings(environment);
  const unusedSettings = findUnusedSettings(environment);
  if (allFaults.length > 0) {
    throw new ConfigError(allFaults.join('\n'), [...unknownSettings, ...unusedSettings]);
  }

  const release = readRelease();
  const compatibility = readCompatibility(values);
  const external = readExternal(values, release.version);
  const waiting = { maxWaiting: MAX_WAITING_FOR_ORIGIN, maxWaitMs: values.QUEUE_TIMEOUT_MS };
  // WORKER_MEMORY_BYTES takes precedence over the memory of the machine.
  const [workersBytes, spareBytes] =
    values.WORKER_MEMORY_BYTES === undefined
      ? [planned.workersBytes, planned.spareBytes]
      : [cores * values.WORKER_MEMORY_BYTES, Infinity];
  const workers = planWorkers(cores, workersBytes, values.MAX_ORIGINAL_BYTES, spareBytes);
  const requiresConfinement = values.REQUIRE_CONFINEMENT === 'true';
  return Object.freeze({
    release,
    unknownSettings,
    unusedSettings,
    listen: { host: values.HOST, port: values.PORT },
    http: {
      trustProxy: values.TRUST_PROXY,
      maxConnections: values.MAX_CONNECTIONS ?? connections.byDefault,
      tls: readTls(values.TLS_CERT_FILE, values.TLS_KEY_FILE),
      maxAgeSeconds: {
        media: values.MEDIA_MAX_AGE_SECONDS,
        defaultAvatar: values.DEFAULT_AVATAR_MAX_AGE_SECONDS,
        notFound: values.NOT_FOUND_MAX_AGE_SECONDS,
        unknownMedia: compatibility.unknownMediaMaxAgeSeconds,
        refused: values.REFUSED_MAX_AGE_SECONDS,
      },
      robotsTag: values.ROBOTS_TAG,
      hasCdnCacheControl: values.CDN_CACHE_CONTROL === 'true',
    },
    log: { level: values.LOG_LEVEL },
    storage: readStorage(values),
    resultStore: readResultStore(values),
    originLimits: {
      firstByteTimeoutMs: values.ORIGIN_FIRST_BYTE_TIMEOUT_MS,
      bodyTimeoutMs: values.ORIGIN_TIMEOUT_MS,
      maxOriginalBytes: values.MAX_ORIGINAL_BYTES,
    },
    originReads: { ...waiting, slots: values.ORIGIN_MAX_READS },
    originStreams: { ...waiting, slots: values.ORIGIN_MAX_STREAMS },
    originalsMemoryBytes: values.ORIGINALS_MEMORY_BYTES,
    maxHashedBytes: values.RELAY_MAX_BYTES,
    renderLimits: {
      maxInputPixels: values.MAX_INPUT_PIXELS,
      maxAnimationPixels: values.MAX_ANIMATION_PIXELS,
      maxScanPixels: values.MAX_SCAN_PIXELS,
      maxEdgePx: values.MAX_EDGE_PIXELS,
      maxFrames: values.MAX_FRAMES,
      maxResultBytes: values.MAX_RESULT_BYTES,
      webpEffort: values.WEBP_EFFORT,
      timeoutMs: values.TRANSFORM_TIMEOUT_MS,
    },
    renderer: {
      ...workers,
      environment: Object.fromEntries(
        Object.entries(environment).filter(([name]) => WORKER_VARIABLES.includes(name)),
      ),
      requiresConfinement,
      videoDecoder: readVideoDecoder(
        values,
        requiresConfinement,
        values.TRANSFORM_TIMEOUT_MS,
        planDecoder(workers.memoryBytes.heavy),
      ),
    },
    video: { maxReadBytes: values.VIDEO_MAX_READ_BYTES },
    admission: {
      maxWaitingPerCore: values.QUEUE_PER_WORKER,
      cores,
      maxWaitMs: values.QUEUE_TIMEOUT_MS,
    },
    rates: readRates(values),
    memory: addMemory(
      memoryBytes,
      {
        cacheBytes: values.CACHE_MEMORY_BYTES,
        cachedOriginalsBytes: values.CACHE_ORIGINALS_BYTES,
        originalsBytes: values.ORIGINALS_MEMORY_BYTES,
        uploadsBytes: values.RELAY_MEMORY_BYTES,
      },
      workers,
    ),
    cache: {
      maxBytes: values.CACHE_MEMORY_BYTES,
      originalBytes: values.CACHE_ORIGINALS_BYTES,
    },
    records: {
      freshForMs: values.CACHE_REVALIDATE_SECONDS * 1000,
      missingForMs: compatibility.missingForMs,
    },
    parseOptions: {
      ...compatibility.parseOptions,
      readExternal:
        external &&
        ((path: string) => verifyExternalPath(path, external.keys, external.pathEncoding)),
    } satisfies ParseOptions,
    external,
    attachments: readAttachments(values),
    relay: readRelay(values),
    uploads: readUploads(values),
    blocklist: readBlocklist(values),
    cdn: readCdn(values),
    secrets: readSecrets(values, environment),
    admin: readAdmin(values),
    internal: readInternal(values),
    explorer: readExplorer(values),
    tracing: readTracing(environment),
    shutdown: { graceMs: values.SHUTDOWN_GRACE_MS },
  });
}

function mayBeEmpty(name: string): boolean {
  const rows: Readonly<Record<string, Setting>> = settingTable;
  return Object.hasOwn(rows, name) && rows[name]?.mayBeEmpty === true;
}

/** Returns the open files that connections of clients cannot use; NaN if a setting is not a number. */
function countReservedFiles(environment: Environment): number {
  const cores = Number(environment.WORKERS ?? countCores());
  const processes = (FILES_PER_WORKER * WORKERS_PER_CORE + DECODERS_PER_CORE) * cores;
  const storage =
    Number(environment.ORIGIN_MAX_READS ?? settingTable.ORIGIN_MAX_READS.default) +
    Number(environment.ORIGIN_MAX_STREAMS ?? settingTable.ORIGIN_MAX_STREAMS.default);
  const results = (environment.RESULT_STORE ?? 'none') === 'none' ? 0 : RESULT_CONNECTIONS;
  const external = hasKeys(environment, 'EXTERNAL_SIGNING_KEYS') ? EXTERNAL_CONNECTIONS : 0;
  const uploadStorages = environment.UPLOADS_S3_BUCKET === undefined ? 1 : 2;
  const uploads = hasKeys(environment, 'RELAY_SIGNING_KEYS')
    ? uploadStorages * RELAY_CONNECTIONS
    : 0;
  const blocks = environment.BLOCKLIST === 's3' ? BLOCKLIST_CONNECTIONS : 0;
  return processes + storage + results + external + uploads + blocks;
}

/** Includes unused secrets, and those of the AWS SDK and OpenTelemetry. */
function readSecrets(values: Settings, environment: Environment): readonly string[] {
  const rows: Readonly<Record<string, Setting>> = settingTable;
  const own = settingNames.filter((name) => rows[name]?.isSecret).map((name) => values[name]);
  const { AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ACCESS_KEY_ID } = environment;
  const ofAws = [AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ACCESS_KEY_ID];
  return [...own, ...ofAws, ...(readTracing(environment)?.secrets ?? [])].flatMap((value) => {
    if (value instanceof SigningKeys) return value.secrets;
    return value === undefined ? [] : String(value);
  });
}

function readRates({ RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS }: Settings) {
  if (RATE_LIMIT_REQUESTS === undefined) return undefined;
  return { requests: RATE_LIMIT_REQUESTS, windowMs: RATE_LIMIT_WINDOW_SECONDS * 1000 };
}

function readAdmin({ ADMIN_HOST: host, ADMIN_PORT: port, ADMIN_TOKEN: token }: Settings) {
  return port === undefined || token === undefined ? undefined : { listen: { host, port }, token };
}

/** The explorer lists private attachments to every client of the listener. */
function readExplorer(values: Settings) {
  const { EXPLORER: choice, STORAGE, HOST, NODE_ENV } = values;
  const isPrivate = isLoopback(HOST) && NODE_ENV !== 'production';
  const isDefault =
    isPrivate &&
    STORAGE === 'filesystem' &&
    keySettingNames.every((name) => readKeys(values, name) === undefined);
  const isOn = choice === undefined ? isDefault : choice === 'on';
  return { isOn, isExposed: isOn && !isPrivate };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
