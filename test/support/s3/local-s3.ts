import { hash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';
import FilesystemStore from '@20minutes/s3rver/lib/stores/filesystem.js';
import { atEnd } from '../at-end.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { openBucket } from './s3-bucket.ts';

/** The credentials that the server in this process accepts. */
export const LOCAL_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
} as const;

const { deleteObject, getObject } = FilesystemStore.prototype;

/** Longest last segment of a key that fits into a file name of 255 bytes with any suffix of the server. */
const MAX_NAME_BYTES = 220;

/** A request, as far as tests look at it. */
export interface LocalS3Request {
  readonly method: string;
  readonly query: Readonly<Record<string, string | undefined>>;
}

interface LocalS3Options {
  /** Names of the buckets; the first is the one that the returned functions use. */
  readonly buckets?: readonly [string, ...string[]];
  /** For tests that ask the bucket itself, for a list: the server counts its path without the slash that the SDK has signed. */
  readonly allowMismatchedSignatures?: boolean;
  /** Whether uploads can be taken back, which the server has not learned. */
  readonly takesUploadsBack?: boolean;
  /** What each request waits for. */
  readonly beforeRequest?: (request: LocalS3Request) => Promise<void> | void;
}

/**
 * Starts an S3 server with an empty bucket in this process, until the end of the test, or of the file's tests. It checks
 * signatures. Puts its credentials into the environment, where the SDK looks for them.
 */
export async function useLocalS3({
  buckets = ['originals'],
  allowMismatchedSignatures = false,
  takesUploadsBack = false,
  beforeRequest,
}: LocalS3Options = {}) {
  mendStore();
  Object.assign(process.env, LOCAL_CREDENTIALS);
  const { path: directory } = await useTemporaryDirectory();
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    directory,
    silent: true,
    allowMismatchedSignatures,
    configureBuckets: buckets.map((name) => ({ name })),
  });
  // Its answers are escaped twice: once by the server, once by its XML builder.
  server.middleware.unshift(async (context, next) => {
    await next();
    if (typeof context.body !== 'string') return;
    context.body = context.body.replaceAll(/&amp;(amp|lt|gt|#x27|#x60);/g, '&$1;');
  });
  const uploads = join(directory, buckets[0], '._S3rver_uploads');
  server.middleware.unshift(async (context, next) => {
    const { method, query } = context;
    await beforeRequest?.({ method, query });
    if (!takesUploadsBack || method !== 'DELETE' || query.uploadId === undefined) return next();
    await rm(join(uploads, query.uploadId), { recursive: true, force: true });
    context.status = 204;
  });
  const { port } = await server.run();
  atEnd(() => server.close());
  return {
    ...openBucket(`http://127.0.0.1:${port}`, buckets[0]),
    port,
    /** Uploads in parts that are neither completed nor taken back. */
    listUploads: () => readdir(uploads).catch(() => []),
  };
}

/** Three faults of the server's store. */
function mendStore(): void {
  // An object is a file with the key's name and a suffix, which together may be too long for a file.
  // Only such names are replaced: a list reads keys from them.
  FilesystemStore.encodeKeyPath = (key) => {
    const [, directory = '', name = ''] = /^(.*\/)?(.*)$/s.exec(key) ?? [];
    if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return key;
    return directory + hash('sha256', name);
  };
  // Of two removals at once, one fails where both tidy up the same directory.
  let removing: Promise<unknown> = Promise.resolve();
  FilesystemStore.prototype.deleteObject = function (bucket, key) {
    removing = removing.catch(() => undefined).then(() => deleteObject.call(this, bucket, key));
    return removing;
  };
  // A range that ends with byte 0 is taken for one without an end; as an object, 0 is true.
  FilesystemStore.prototype.getObject = function (bucket, key, options) {
    const mended = options?.end === 0 ? { ...options, end: Object(0) } : options;
    return getObject.call(this, bucket, key, mended);
  };
}
