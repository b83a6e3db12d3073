import { realpathSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { originFolders } from '../../contract/resources.ts';
import type { Settings } from '../settings.ts';

/** Folder of the sample originals, which come with the package; seen from the compiled file, and from its source. */
export const SAMPLE_FOLDER = fileURLToPath(new URL('../../../fixtures/originals', import.meta.url));

/** Connections to the bucket of renderings at the same time: reads and writes are short. */
export const RESULT_CONNECTIONS = 64;

/** For one read or write of a rendering in a bucket, in milliseconds. */
const RESULT_TIMEOUT_MS = 10_000;

/** Where the originals are. */
export function readStorage(values: Settings) {
  const bucket = values.S3_BUCKET;
  if (values.STORAGE === 'filesystem' || bucket === undefined) {
    const folder = values.STORAGE_DIR ?? SAMPLE_FOLDER;
    const isSample = resolve(folder) === SAMPLE_FOLDER;
    return { kind: 'filesystem', folder, marker: values.STORAGE_MARKER, isSample } as const;
  }
  return {
    kind: 's3',
    bucket,
    prefix: values.S3_PREFIX,
    ...readServer(values),
    maxConnections: values.ORIGIN_MAX_READS + values.ORIGIN_MAX_STREAMS,
  } as const;
}

/** Where renderings outlive the process; `undefined`: nowhere. */
export function readResultStore(values: Settings) {
  const { RESULT_STORE_DIR: folder, RESULT_S3_BUCKET: bucket } = values;
  if (values.RESULT_STORE === 'filesystem' && folder !== undefined) {
    return { kind: 'filesystem', folder, maxBytes: values.RESULT_STORE_MAX_BYTES } as const;
  }
  if (values.RESULT_STORE !== 's3' || bucket === undefined) return undefined;
  return {
    kind: 's3',
    bucket,
    prefix: values.RESULT_S3_PREFIX,
    ...readServer(values),
    maxConnections: RESULT_CONNECTIONS,
    timeoutMs: RESULT_TIMEOUT_MS,
    maxObjectBytes: values.MAX_RESULT_BYTES,
  } as const;
}

/** Where originals or renderings are, as an operator calls it: `bucket media`, `folder /srv/media`. */
export function describePlace(
  place: { readonly kind: 's3'; bucket: string } | { readonly kind: 'filesystem'; folder: string },
): string {
  return place.kind === 's3' ? `bucket ${place.bucket}` : `folder ${place.folder}`;
}

/** The server is one for both buckets. */
function readServer({ S3_FORCE_PATH_STYLE: pathStyle, ...values }: Settings) {
  return {
    region: values.S3_REGION,
    endpoint: values.S3_ENDPOINT,
    forcePathStyle:
      pathStyle === undefined ? values.S3_ENDPOINT !== undefined : pathStyle === 'true',
    connectTimeoutMs: values.ORIGIN_CONNECT_TIMEOUT_MS,
  };
}

/**
 * Whether a key of a rendering could be one of an original, both in one bucket: a purge, or the rule that
 * clears the renderings, would remove originals.
 */
export function mayMixUp(values: Settings): boolean {
  const { S3_PREFIX: originals, RESULT_S3_PREFIX: results } = values;
  if (values.STORAGE !== 's3' || values.RESULT_STORE !== 's3') return false;
  if (values.S3_BUCKET !== values.RESULT_S3_BUCKET) return false;
  if (originals.startsWith(results)) return true;
  return originFolders.some((root) => results.startsWith(originals + root));
}

/** What a folder of renderings is made of; see `RenderingFolder`. */
const RESULT_FOLDERS = ['', 'results', 'incoming'] as const;

/**
 * Whether one of the folders of originals and renderings is in the other, or is the other, by whatever links
 * they are called: a full store would remove originals. Not covered: folders that are mounted at two places.
 */
export function areNested(values: Settings): boolean {
  const { STORAGE_DIR: folder, RESULT_STORE_DIR: resultFolder } = values;
  if (values.STORAGE !== 'filesystem' || values.RESULT_STORE !== 'filesystem') return false;
  if (resultFolder === undefined) return false;
  const originals = realFolder(folder ?? SAMPLE_FOLDER);
  return RESULT_FOLDERS.some((name) => {
    const results = realFolder(join(resultFolder, name));
    return originals.startsWith(results) || results.startsWith(originals);
  });
}

/** Where a path leads, with a separator after it; as it is where it leads nowhere. */
function realFolder(path: string): string {
  const real = realPathOf(resolve(path));
  return real.endsWith(sep) ? real : real + sep;
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // not there yet, or a fault by itself
  }
}
