// Makes the buckets of an S3 server that has none yet: what compose.yaml runs once, in Darkroom's image. What
// is there already is left as it is; only samples that are missing are put in.
//
//   S3_ENDPOINT, S3_REGION, S3_BUCKET, RESULT_S3_BUCKET, AWS_*   as Darkroom has them
//   SAMPLES_DIR                                                  originals to begin with, laid out by key; or none
//   LIFECYCLE_FILE                                               rule that bounds the renderings
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import {
  CreateBucketCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';

const {
  S3_ENDPOINT,
  S3_REGION,
  S3_BUCKET,
  RESULT_S3_BUCKET,
  SAMPLES_DIR,
  LIFECYCLE_FILE = 'deploy/s3-lifecycle.json',
} = process.env;

const s3 = new S3Client({
  endpoint: S3_ENDPOINT,
  region: S3_REGION,
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
});

await createBucket(S3_BUCKET);
if (await createBucket(RESULT_S3_BUCKET)) {
  await s3.send(
    new PutBucketLifecycleConfigurationCommand({
      Bucket: RESULT_S3_BUCKET,
      LifecycleConfiguration: JSON.parse(readFileSync(LIFECYCLE_FILE, 'utf8')),
    }),
  );
}
if (SAMPLES_DIR !== undefined) await putSamples();

/** Tells whether it was not there yet. */
async function createBucket(bucket) {
  const exists = await s3.send(new HeadBucketCommand({ Bucket: bucket })).then(
    () => true,
    () => false,
  );
  // If it failed for another reason than that, this tells which.
  if (!exists) await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  console.log(`bucket ${bucket}: ${exists ? 'is there' : 'made'}`);
  return !exists;
}

async function putSamples() {
  const files = readdirSync(SAMPLES_DIR, { recursive: true, withFileTypes: true });
  const paths = files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name));
  let put = 0;
  for (const path of paths) {
    const Key = relative(SAMPLES_DIR, path).split(sep).join('/');
    const { KeyCount } = await s3.send(
      new ListObjectsV2Command({ Bucket: S3_BUCKET, Prefix: Key, MaxKeys: 1 }),
    );
    if (KeyCount > 0) continue;
    await s3.send(new PutObjectCommand({ Bucket: S3_BUCKET, Key, Body: readFileSync(path) }));
    put += 1;
  }
  console.log(`bucket ${S3_BUCKET}: ${put} sample originals put in`);
}
