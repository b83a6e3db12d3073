import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { medianOfThree } from '../support/median.ts';
import { watchGrowth } from '../support/processes/process-memory.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';

const MEBIBYTE = 1024 * 1024;
const LARGE_BYTES = 500 * MEBIBYTE;
const AT_ONCE = 10;
/**
 * What ten transfers together may add to the memory of a service that has warmed up: 11 to 29 MiB on a quiet
 * machine, and more where collections come late on a busy one; of 5 000 MiB that go through.
 */
const ADDITIONAL_MEMORY_BYTES = 64 * MEBIBYTE;

describe('an attachment of 500 MiB', () => {
  let service: ServiceProcess;
  beforeAll(async () => {
    const bucket = await createRgwBucket('large');
    await bucket.put('attachments/1/1/large.bin', Buffer.alloc(LARGE_BYTES, 'large, '));
    await bucket.put('attachments/1/1/small.bin', Buffer.alloc(2 * MEBIBYTE, 'small, '));
    service = await startService({
      STORAGE: 's3',
      S3_BUCKET: 'large',
      S3_ENDPOINT: rgw.endpoint,
      ...rgw.credentials,
    });
  }, 120_000);
  afterAll(() => service?.stop());

  const receive = (file: string): Promise<number> =>
    new Promise((resolve, reject) => {
      get(`${service.origin}/attachments/1/1/${file}`, { agent: false }, (response) => {
        let received = 0;
        response.on('data', (chunk: Buffer) => {
          received += chunk.length;
        });
        response.once('end', () => resolve(received));
        response.once('error', reject);
      }).once('error', reject);
    });

  test('is sent ten times at once in constant memory', {
    timeout: 120_000,
  }, async () => {
    for (let round = 0; round < 20; round += 1) await receive('small.bin');
    await sleep(500);
    const grownBytes = await medianOfThree(async () => {
      const growth = watchGrowth(service.pid);
      const all = Array.from({ length: AT_ONCE }, () => receive('large.bin'));
      expect(await Promise.all(all)).toEqual(Array(AT_ONCE).fill(LARGE_BYTES));
      return growth();
    });
    expect(grownBytes).toBeLessThan(ADDITIONAL_MEMORY_BYTES);
  });
});
