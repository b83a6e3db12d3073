import { test } from 'vitest';
import { killInTheMiddle } from '../support/edges/edge-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';

test('journals in a bucket are taken over by another replica, or by the next start', async () => {
  await createRgwBucket('edge-journals');
  const placeOf = (key: string) => ({
    BLOCKLIST: 's3',
    BLOCKLIST_S3_BUCKET: 'edge-journals',
    BLOCKLIST_S3_KEY: key,
    S3_ENDPOINT: rgw.endpoint,
    AWS_EC2_METADATA_DISABLED: 'true',
    ...rgw.credentials,
  });
  await Promise.all([
    killInTheMiddle('cloudflare', true, placeOf('one/blocks.jsonl')),
    killInTheMiddle('fastly', false, placeOf('other/blocks.jsonl')),
  ]);
}, 150_000);
