// Makes the buckets of an S3 server that has none yet: what compose.yaml runs once, in Darkroom's image.
// Doing it again changes nothing.
//
//   S3_ENDPOINT, S3_REGION, S3_BUCKET, RESULT_S3_BUCKET, AWS_*   as Darkroom has them
//   SAMPLES_DIR                                                  originals to begin with, laid out by key
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
  SAMPLES_DIR = 'fixtures/originals',
  LIFECYCLE_FILE = 'deploy/s3-lifecycle.json',
} = process.env;

const s3 = new S3Client({
  endpoint: S3_ENDPOINT,
  region: S3_REGION,
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
});

for (const bucket of [S3_BUCKET, RESULT_S3_BUCKET]) await createBucket(bucket);
await s3.send(
  new PutBucketLifecycleConfigurationCommand({
    Bucket: RESULT_S3_BUCKET,
    LifecycleConfiguration: JSON.parse(readFileSync(LIFECYCLE_FILE, 'utf8')),
  }),
);
const { KeyCount } = await s3.send(new ListObjectsV2Command({ Bucket: S3_BUCKET, MaxKeys: 1 }));
if (KeyCount === 0) await putSamples();

async function createBucket(bucket) {
  const exists = await s3.send(new HeadBucketCommand({ Bucket: bucket })).then(
    () => true,
    () => false,
  );
  // If it failed for another reason than that, this tells which.
  if (!exists) await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  console.log(`bucket ${bucket}: ${exists ? 'is there' : 'made'}`);
}

async function putSamples() {
  const files = readdirSync(SAMPLES_DIR, { recursive: true, withFileTypes: true });
  const paths = files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name));
  for (const path of paths) {
    const Key = relative(SAMPLES_DIR, path).split(sep).join('/');
    await s3.send(new PutObjectCommand({ Bucket: S3_BUCKET, Key, Body: readFileSync(path) }));
  }
  console.log(`bucket ${S3_BUCKET}: ${paths.length} sample originals put in`);
}
