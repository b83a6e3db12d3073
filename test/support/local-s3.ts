import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';
import FilesystemStore from '@20minutes/s3rver/lib/stores/filesystem.js';
import { openBucket, type S3Bucket } from './s3-bucket.ts';

/** The credentials that the server in this process accepts. */
export const LOCAL_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
} as const;

const { getObject } = FilesystemStore.prototype;

/** An S3 server in this process. */
export interface LocalS3 extends S3Bucket {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/**
 * Starts an S3 server with an empty bucket in this process. It checks signatures; its files are gone
 * when it is closed. Puts its credentials into the environment, where the SDK looks for them.
 */
export async function startLocalS3(): Promise<LocalS3> {
  mendStore();
  Object.assign(process.env, LOCAL_CREDENTIALS);
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-s3-'));
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    directory,
    silent: true,
    configureBuckets: [{ name: 'originals' }],
  });
  const { port } = await server.run();
  return {
    ...openBucket(`http://127.0.0.1:${port}`, 'originals'),
    port,
    close: async () => {
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Two faults of the server's store. */
function mendStore(): void {
  // An object is a file with the key's name and a suffix, which together may be too long for a file.
  FilesystemStore.encodeKeyPath = (key) => createHash('sha256').update(key).digest('hex');
  // A range that ends with byte 0 is taken for one without an end; as an object, 0 is true.
  FilesystemStore.prototype.getObject = function (bucket, key, options) {
    const end = options?.end === 0 ? (Object(0) as number) : options?.end;
    return getObject.call(this, bucket, key, { ...options, end });
  };
}
