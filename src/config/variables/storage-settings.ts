import { realpathSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isOriginKey } from '../../contract/media-path.ts';
import { contractResources, platformResources } from '../../contract/resources.ts';
import type { Settings } from '../settings.ts';
import { BLOCKLIST_CONNECTIONS } from './block-settings.ts';

/** The path is the same from the compiled file and from its source. */
export const SAMPLE_DIRECTORY = fileURLToPath(
  new URL('../../../fixtures/originals', import.meta.url),
);

/** Reads and writes are short. */
export const RESULT_CONNECTIONS = 64;

const RESULT_TIMEOUT_MS = 10_000;

/** Large bodies get more time. */
const BLOCKLIST_TIMEOUT_MS = 10_000;

export function readStorage(values: Settings) {
  const bucket = values.S3_BUCKET;
  if (values.STORAGE === 'filesystem' || bucket === undefined) {
    const directory = values.STORAGE_DIR ?? SAMPLE_DIRECTORY;
    const isSample = resolve(directory) === SAMPLE_DIRECTORY;
    const none = { bucket: undefined, prefix: undefined };
    return {
      kind: 'filesystem',
      directory,
      marker: values.STORAGE_MARKER,
      isSample,
      ...none,
    } as const;
  }
  return {
    kind: 's3',
    bucket,
    prefix: values.S3_PREFIX,
    isSample: false,
    ...readServer(values),
    maxConnections: values.ORIGIN_MAX_READS + values.ORIGIN_MAX_STREAMS,
  } as const;
}

export function readResultStore(values: Settings) {
  const { RESULT_STORE_DIR: directory, RESULT_S3_BUCKET: bucket } = values;
  if (values.RESULT_STORE === 'filesystem' && directory !== undefined) {
    return { kind: 'filesystem', directory, maxBytes: values.RESULT_STORE_MAX_BYTES } as const;
  }
  if (values.RESULT_STORE !== 's3' || bucket === undefined) return undefined;
  return {
    kind: 's3',
    bucket,
    prefix: values.RESULT_S3_PREFIX,
    ...readServer(values),
    maxConnections: RESULT_CONNECTIONS,
    timeoutMs: RESULT_TIMEOUT_MS,
  } as const;
}

/** Storage of uploads that the platform reads itself (contract §14). */
export function readUploads(values: Settings) {
  const {
    UPLOADS_S3_BUCKET: bucket,
    UPLOADS_DIR: directory,
    ORIGIN_MAX_READS,
    ORIGIN_MAX_STREAMS,
  } = values;
  if (directory !== undefined) {
    const location = { kind: 'filesystem', directory, marker: undefined, isSample: false } as const;
    return { ...location, bucket: values.UPLOADS_DIR_BUCKET };
  }
  if (bucket === undefined) return undefined;
  const maxConnections = ORIGIN_MAX_READS + ORIGIN_MAX_STREAMS;
  return { kind: 's3', bucket, prefix: '', ...readServer(values), maxConnections } as const;
}

export function readBlocklist(values: Settings) {
  const location = readLocation(values);
  if (location === undefined) return undefined;
  return {
    location,
    pollMs: values.BLOCKLIST_POLL_SECONDS * 1000,
    blockedBy: values.BLOCKED_BY,
  };
}

function readLocation(values: Settings) {
  const { BLOCKLIST: kind, BLOCKLIST_FILE: file, BLOCKLIST_S3_BUCKET: bucket } = values;
  if (kind === 'filesystem' && file !== undefined) return { kind, file } as const;
  if (kind !== 's3' || bucket === undefined) return undefined;
  return {
    kind,
    bucket,
    key: values.BLOCKLIST_S3_KEY,
    ...readServer(values),
    maxConnections: BLOCKLIST_CONNECTIONS,
    timeoutMs: BLOCKLIST_TIMEOUT_MS,
  } as const;
}

export function describeLocation(
  location:
    | { readonly kind: 's3'; bucket: string }
    | { readonly kind: 'filesystem'; directory: string },
): string {
  return location.kind === 's3' ? `bucket ${location.bucket}` : `directory ${location.directory}`;
}

export const keySettings = { filesystem: 'STORAGE_DIR', s3: 'S3_PREFIX' } as const;

function readServer({ S3_FORCE_PATH_STYLE: pathStyle, ...values }: Settings) {
  return {
    region: values.S3_REGION,
    endpoint: values.S3_ENDPOINT,
    forcePathStyle:
      pathStyle === undefined ? values.S3_ENDPOINT !== undefined : pathStyle === 'true',
    connectTimeoutMs: values.ORIGIN_CONNECT_TIMEOUT_MS,
  };
}

/** Whether a purge, or a lifecycle rule for renderings, would remove originals in the same bucket. */
export function prefixesOverlap(values: Settings): boolean {
  const { S3_PREFIX: originals, RESULT_S3_PREFIX: results } = values;
  if (values.STORAGE !== 's3' || values.RESULT_STORE !== 's3') return false;
  if (values.S3_BUCKET !== values.RESULT_S3_BUCKET) return false;
  if (originals.startsWith(results)) return true;
  const { keyRoots } = values.COMPATIBILITY === 'fluxer' ? platformResources : contractResources;
  return keyRoots.some((root) => results.startsWith(originals + root));
}

/** Whether clients could read the block list as an original, or replace it by an upload. */
export function isListFileServed(values: Settings): boolean {
  const { BLOCKLIST, BLOCKLIST_FILE: file, STORAGE } = values;
  if (BLOCKLIST !== 'filesystem' || file === undefined) return false;
  const originals = STORAGE === 'filesystem' ? (values.STORAGE_DIR ?? SAMPLE_DIRECTORY) : undefined;
  const directories = [originals, values.UPLOADS_DIR].filter(
    (directory) => directory !== undefined,
  );
  return directories.some((directory) =>
    realDirectory(dirname(file)).startsWith(realDirectory(directory)),
  );
}

/** Whether clients could read the object of the block list as an original. */
export function isListKeyServed(values: Settings): boolean {
  const { BLOCKLIST, STORAGE, BLOCKLIST_S3_BUCKET: bucket } = values;
  const { S3_PREFIX: prefix, BLOCKLIST_S3_KEY: key } = values;
  if (BLOCKLIST !== 's3' || bucket === undefined) return false;
  if (STORAGE !== 's3' || bucket !== values.S3_BUCKET || !key.startsWith(prefix)) return false;
  return isOriginKey(key.slice(prefix.length)) || isOriginKey(`${key.slice(prefix.length)}.1`);
}

const RESULT_DIRECTORIES = ['', 'results', 'incoming'] as const;

/** Whether one directory contains the other, even through links. Not covered: directories that are mounted twice. */
export function areNested(values: Settings): boolean {
  return directoriesOverlap(originalDirectories(values), resultDirectories(values));
}

/** Whether a public route would read from the directory of uploads, or a full result store would remove uploads. */
export function areUploadsNested(values: Settings): boolean {
  const { UPLOADS_DIR: directory } = values;
  if (directory === undefined) return false;
  return directoriesOverlap(
    [directory],
    [...originalDirectories(values), ...resultDirectories(values)],
  );
}

/** Whether a public route reads from the bucket of uploads, or its name in a capability is that of another bucket. */
export function isUploadsBucketShared(values: Settings): boolean {
  const { S3_BUCKET, RESULT_S3_BUCKET } = values;
  const bucket = readUploads(values)?.bucket;
  return bucket !== undefined && [S3_BUCKET, RESULT_S3_BUCKET].includes(bucket);
}

function originalDirectories({ STORAGE, STORAGE_DIR }: Settings): readonly string[] {
  return STORAGE === 'filesystem' ? [STORAGE_DIR ?? SAMPLE_DIRECTORY] : [];
}

function resultDirectories({
  RESULT_STORE,
  RESULT_STORE_DIR: directory,
}: Settings): readonly string[] {
  if (RESULT_STORE !== 'filesystem' || directory === undefined) return [];
  return RESULT_DIRECTORIES.map((name) => join(directory, name));
}

function directoriesOverlap(some: readonly string[], others: readonly string[]): boolean {
  const real = others.map(realDirectory);
  return some
    .map(realDirectory)
    .some((one) => real.some((other) => one.startsWith(other) || other.startsWith(one)));
}

/** Returns the real path, or the path itself if it does not exist, with a trailing separator. */
function realDirectory(path: string): string {
  let real = resolve(path);
  try {
    real = realpathSync(real);
  } catch {
    // Other checks report a missing directory.
  }
  return real.endsWith(sep) ? real : real + sep;
}
