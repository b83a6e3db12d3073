import { isIP } from 'node:net';
import type { ParseOptions } from '../contract/media-request.ts';
import { verifyExternalPath } from '../contract/signing/external-path.ts';
import { SigningKeys } from '../contract/signing/signing-keys.ts';
import {
  addUpMemory,
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

/** All faults of the configuration at once; `message` has one line per variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly warnings: readonly SettingWarning[];

  constructor(message: string, warnings: readonly SettingWarning[] = []) {
    super(message);
    this.warnings = warnings;
  }
}

/** Variables that workers inherit; none of them is a secret. */
const WORKER_VARIABLES = ['PATH', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'MALLOC_CONF'];

/** One worker of each lane. */
const WORKERS_PER_CORE = 2;

/** A heavy worker may have a video decoder. */
const DECODERS_PER_CORE = 1;

/** The worker's channel, and briefly that of its replacement. */
const FILES_PER_WORKER = 2;

/** Most requests that may wait to read from the origin: each costs some kilobytes. */
const MAX_WAITING_FOR_ORIGIN = 1_024;

/** The service's configuration, one slice per consumer. */
export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the configuration once, at boot. An empty variable counts as unset, unless its row says that it may be empty.
 *
 * @param memoryBytes of the machine or the container, which defaults follow
 * @throws ConfigError with every fault: name, expected form and the value received
 */
export function readConfig(environment: Environment, memoryBytes = readMemoryBytes()) {
  const given: Readonly<Record<string, string>> = Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value || (value === '' && mayBeEmpty(name)) ? [[name, value]] : [],
    ),
  );
  const connections = planConnections(countOtherFiles(given));
  const cores = Number(given.WORKERS ?? countCores());
  const planned = planMemory(memoryBytes, cores);
  const { values, faults } = readSettings(given, connections.most, planned.defaults);
  const allFaults = [...faults, findFilesFault(), findProtocolFault(given)].filter(
    (fault) => fault !== undefined,
  );
  const unknownSettings = findUnknownSettings(given);
  const unusedSettings = findUnusedSettings(given);
  if (allFaults.length > 0) {
    throw new ConfigError(allFaults.join('\n'), [...unknownSettings, ...unusedSettings]);
  }

  const release = readRelease();
  const compatibility = readCompatibility(values);
  const external = readExternal(values, release.version);
  const waiting = { maxWaiting: MAX_WAITING_FOR_ORIGIN, maxWaitMs: values.QUEUE_TIMEOUT_MS };
  // A setting wins over the size of the machine.
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
      wholeBodyTimeoutMs: values.ORIGIN_TIMEOUT_MS,
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
        Object.entries(given).filter(([name]) => WORKER_VARIABLES.includes(name)),
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
    /** Memory and cores from which the defaults follow, and warnings. */
    memory: addMemory(memoryBytes, values, workers),
    cache: {
      maxBytes: values.CACHE_MEMORY_BYTES,
      originalBytes: values.CACHE_ORIGINALS_BYTES,
    },
    versions: {
      freshForMs: values.CACHE_REVALIDATE_SECONDS * 1000,
      goneForMs: compatibility.missingForMs,
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
    /** Texts that the log redacts. */
    secrets: readSecrets(values, given),
    admin: readAdmin(values),
    internal: readInternal(values),
    explorer: readExplorer(values),
    tracing: readTracing(given),
    shutdown: { graceMs: values.SHUTDOWN_GRACE_MS },
  });
}

/** Returns the parts of the memory, and whether together they may need more than there is. */
function addMemory(
  totalBytes: number,
  values: Settings,
  { workers, memoryBytes: workerBytes }: ReturnType<typeof planWorkers>,
) {
  const parts = {
    cacheBytes: values.CACHE_MEMORY_BYTES,
    cachedOriginalsBytes: values.CACHE_ORIGINALS_BYTES,
    originalsBytes: values.ORIGINALS_MEMORY_BYTES,
    uploadsBytes: values.RELAY_MEMORY_BYTES,
  };
  const workersBytes = workers.light * workerBytes.light + workers.heavy * workerBytes.heavy;
  const neededBytes = addUpMemory(Object.values(parts), workersBytes);
  return { totalBytes, ...parts, workerBytes, neededBytes, isShort: neededBytes > totalBytes };
}

function mayBeEmpty(name: string): boolean {
  const rows: Readonly<Record<string, Setting>> = settingTable;
  return Object.hasOwn(rows, name) && rows[name]?.mayBeEmpty === true;
}

/** Counts the files that are open besides those of clients; NaN if a setting is not a number. */
function countOtherFiles(given: Environment): number {
  const cores = Number(given.WORKERS ?? countCores());
  const processes = (FILES_PER_WORKER * WORKERS_PER_CORE + DECODERS_PER_CORE) * cores;
  const storage =
    Number(given.ORIGIN_MAX_READS ?? settingTable.ORIGIN_MAX_READS.default) +
    Number(given.ORIGIN_MAX_STREAMS ?? settingTable.ORIGIN_MAX_STREAMS.default);
  const results = (given.RESULT_STORE ?? 'none') === 'none' ? 0 : RESULT_CONNECTIONS;
  const external = hasKeys(given, 'EXTERNAL_SIGNING_KEYS') ? EXTERNAL_CONNECTIONS : 0;
  const uploadStorages = given.UPLOADS_S3_BUCKET === undefined ? 1 : 2;
  const uploads = hasKeys(given, 'RELAY_SIGNING_KEYS') ? uploadStorages * RELAY_CONNECTIONS : 0;
  const blocks = given.BLOCKLIST === 's3' ? BLOCKLIST_CONNECTIONS : 0;
  return processes + storage + results + external + uploads + blocks;
}

/** Returns the values of all secret variables: of Darkroom, also of unused ones, of the AWS SDK, and of OpenTelemetry. */
function readSecrets(values: Settings, given: Environment): readonly string[] {
  const rows: Readonly<Record<string, Setting>> = settingTable;
  const own = settingNames.filter((name) => rows[name]?.isSecret).map((name) => values[name]);
  const { AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ACCESS_KEY_ID } = given;
  const foreign = [AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ACCESS_KEY_ID];
  return [...own, ...foreign, ...(readTracing(given)?.secrets ?? [])].flatMap((value) => {
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

/** Decides whether the explorer is on, which lists private attachments to anybody who can reach the listener. */
function readExplorer(values: Settings) {
  const { EXPLORER: word, STORAGE, HOST, NODE_ENV } = values;
  const isPrivate = isLoopback(HOST) && NODE_ENV !== 'production';
  const isWanted =
    isPrivate &&
    STORAGE === 'filesystem' &&
    keySettingNames.every((name) => readKeys(values, name) === undefined);
  const isOn = word === undefined ? isWanted : word === 'on';
  return { isOn, isExposed: isOn && !isPrivate };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
