import { afterAll, beforeAll } from 'vitest';
import { createS3Origin } from '../../src/adapters/s3-origin.ts';
import { type LocalS3, startLocalS3 } from '../support/local-s3.ts';
import { s3Options } from '../support/s3-bucket.ts';
import { describeOrigin } from './origin.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3();
});
afterAll(() => server.close());

/** Each test has a prefix of its own, which is as good as a bucket of its own. */
let count = 0;

describeOrigin('s3', async () => {
  count += 1;
  const prefix = `media/${count}/`;
  return {
    origin: createS3Origin(s3Options(server, { prefix })),
    put: (key, bytes) => server.put(prefix + key, bytes),
    remove: (key) => server.remove(prefix + key),
    close: async () => undefined,
  };
});
