import { hash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';
import FilesystemStore from '@20minutes/s3rver/lib/stores/filesystem.js';
import { atEnd } from '../at-end.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { openBucket } from './s3-bucket.ts';

/** Credentials of the S3 server in this process. */
export const LOCAL_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
} as const;

const { deleteObject, getObject } = FilesystemStore.prototype;

/** Maximum length of a key's last segment, so that it fits into a file name of 255 bytes with any suffix of the server. */
const MAX_NAME_BYTES = 220;

export interface LocalS3Request {
  readonly method: string;
  readonly query: Readonly<Record<string, string | undefined>>;
}

interface LocalS3Options {
  /** Names of the buckets; the returned functions use the first one. */
  readonly buckets?: readonly [string, ...string[]];
  /** For requests to the bucket itself, such as lists: the server checks the path without the slash that the SDK signs. */
  readonly allowMismatchedSignatures?: boolean;
  /** Whether uploads can be aborted, which s3rver does not support. */
  readonly canAbortUploads?: boolean;
  /** Delays each request. */
  readonly beforeRequest?: (request: LocalS3Request) => Promise<void> | void;
}

/**
 * Starts an S3 server with an empty bucket in this process, until the end of the test or file. It checks signatures; its
 * credentials are in the environment, where the SDK reads them.
 */
export async function useLocalS3({
  buckets = ['originals'],
  allowMismatchedSignatures = false,
  canAbortUploads = false,
  beforeRequest,
}: LocalS3Options = {}) {
  patchStore();
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
  // Responses are escaped twice: by the server, and by its XML builder.
  server.middleware.unshift(async (context, next) => {
    await next();
    if (typeof context.body !== 'string') return;
    context.body = context.body.replaceAll(/&amp;(amp|lt|gt|#x27|#x60);/g, '&$1;');
  });
  const uploads = join(directory, buckets[0], '._S3rver_uploads');
  server.middleware.unshift(async (context, next) => {
    const { method, query } = context;
    await beforeRequest?.({ method, query });
    if (!canAbortUploads || method !== 'DELETE' || query.uploadId === undefined) return next();
    await rm(join(uploads, query.uploadId), { recursive: true, force: true });
    context.status = 204;
  });
  const { port } = await server.run();
  atEnd(() => server.close());
  return {
    ...openBucket(`http://127.0.0.1:${port}`, buckets[0]),
    port,
    /** Lists multipart uploads that are neither completed nor aborted. */
    listUploads: () => readdir(uploads).catch(() => []),
  };
}

/** Works around three bugs of the server's store. */
function patchStore(): void {
  // File names, the key with a suffix, can be too long. Only such names are replaced, because lists read keys from names.
  FilesystemStore.encodeKeyPath = (key) => {
    const [, directory = '', name = ''] = /^(.*\/)?(.*)$/s.exec(key) ?? [];
    if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return key;
    return directory + hash('sha256', name);
  };
  // Of two concurrent removals, one fails if both remove the same empty directory.
  let removing: Promise<unknown> = Promise.resolve();
  FilesystemStore.prototype.deleteObject = function (bucket, key) {
    removing = removing.catch(() => undefined).then(() => deleteObject.call(this, bucket, key));
    return removing;
  };
  // The server treats end 0 as a missing end; `Object(0)` is truthy.
  FilesystemStore.prototype.getObject = function (bucket, key, options) {
    const patched = options?.end === 0 ? { ...options, end: Object(0) } : options;
    return getObject.call(this, bucket, key, patched);
  };
}
