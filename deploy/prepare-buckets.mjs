// Creates missing buckets, lifecycle rules and sample originals on an S3 server, and changes nothing that exists.
// compose.yaml runs it in Darkroom's image at each start, so a run after an interrupted one completes it.
//
//   S3_ENDPOINT, S3_REGION, S3_BUCKET, RESULT_S3_BUCKET, AWS_*   as for Darkroom
//   SAMPLES_DIR                                                  sample originals, by key; omit to store none
//   LIFECYCLE_FILE                                               lifecycle rule that deletes old renderings
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import {
  CreateBucketCommand,
  GetBucketLifecycleConfigurationCommand,
  HeadBucketCommand,
  HeadObjectCommand,
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
await createBucket(RESULT_S3_BUCKET);
await limitRenderings();
if (SAMPLES_DIR !== undefined) await putSamples();

async function createBucket(Bucket) {
  const exists = await s3.send(new HeadBucketCommand({ Bucket })).then(
    () => true,
    () => false,
  );
  // If HEAD failed for another reason, creating the bucket reports it.
  if (!exists) await s3.send(new CreateBucketCommand({ Bucket }));
  console.log(`bucket ${Bucket}: ${exists ? 'exists' : 'created'}`);
}

/** Also for an existing bucket: without a lifecycle rule, renderings are never deleted. */
async function limitRenderings() {
  const Bucket = RESULT_S3_BUCKET;
  const found = await find(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  // Without rules, the response is a 404; older versions of Garage return an empty 204.
  const hasRules = (found?.Rules ?? []).length > 0;
  if (!hasRules) {
    const LifecycleConfiguration = JSON.parse(readFileSync(LIFECYCLE_FILE, 'utf8'));
    await s3.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
  }
  console.log(`bucket ${Bucket}: lifecycle ${hasRules ? 'exists' : 'set'}`);
}

async function putSamples() {
  const files = readdirSync(SAMPLES_DIR, { recursive: true, withFileTypes: true });
  const paths = files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name));
  let put = 0;
  for (const path of paths) {
    const Key = relative(SAMPLES_DIR, path).split(sep).join('/');
    if ((await find(new HeadObjectCommand({ Bucket: S3_BUCKET, Key }))) !== undefined) continue;
    await s3.send(new PutObjectCommand({ Bucket: S3_BUCKET, Key, Body: readFileSync(path) }));
    put += 1;
  }
  console.log(`bucket ${S3_BUCKET}: ${put} sample originals uploaded`);
}

/** Returns the server's response, `undefined` for a 404. Throws all other errors. */
async function find(command) {
  try {
    return await s3.send(command);
  } catch (error) {
    if (error.$metadata?.httpStatusCode !== 404) throw error;
    return undefined;
  }
}
