import { randomUUID } from 'node:crypto';
import { describeReplicas } from '../support/cdn/replicas.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';

describeReplicas('a bucket of Ceph RGW', async () => {
  const name = `purges-${randomUUID()}`;
  const bucket = await createRgwBucket(name);
  return {
    settings: {
      ...{ BLOCKLIST: 's3', BLOCKLIST_S3_BUCKET: name },
      ...{ S3_ENDPOINT: rgw.endpoint, S3_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true' },
      ...rgw.credentials,
    },
    names: () => bucket.list(),
    put: (key, bytes) => bucket.put(key, bytes),
    listName: 'blocks.jsonl',
  };
});
