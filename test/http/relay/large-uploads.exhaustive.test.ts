import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { listenUntilEnd } from '../../support/at-end.ts';
import { medianOfThree } from '../../support/median.ts';
import { watchGrowth } from '../../support/processes/process-memory.ts';
import { useService } from '../../support/processes/service-process.ts';
import { photo } from '../../support/uploads/photos.ts';
import { RELAY_KEY, uploadTarget } from '../../support/uploads/relay-app.ts';

const MEBIBYTE = 1024 * 1024;
const CONCURRENT_UPLOADS = 10;

let receivedBytes = 0;
/** A bucket that accepts everything and stores nothing, so that only the service uses memory. */
const bucket = createServer((message, response) => {
  message.on('data', (chunk: Buffer) => {
    if (message.method === 'PUT') receivedBytes += chunk.length;
  });
  message.on('end', () => {
    if (message.method === 'HEAD') return response.writeHead(404).end();
    if (message.method === 'PUT') return response.writeHead(200, { ETag: '"a"' }).end();
    const { searchParams } = new URL(message.url ?? '', 'http://bucket');
    const name = searchParams.has('uploads') ? 'Initiate' : 'Complete';
    const content = '<UploadId>1</UploadId><ETag>"b"</ETag>';
    return response.end(`<${name}MultipartUploadResult>${content}</${name}MultipartUploadResult>`);
  });
});
const bucketPort = await listenUntilEnd(bucket);

const piece = Buffer.alloc(MEBIBYTE);

test.each([
  ['a length', true, 500 * MEBIBYTE, 64 * MEBIBYTE],
  // A part of 8 MiB for each upload, and some overhead.
  ['no length', false, 100 * MEBIBYTE, CONCURRENT_UPLOADS * 12 * MEBIBYTE],
] as const)(
  'ten large concurrent uploads with %s take constant memory',
  { timeout: 300_000 },
  async (_, hasLength, sizeBytes, maxBytes) => {
    receivedBytes = 0;
    const service = await useService({
      STORAGE: 's3',
      S3_BUCKET: 'uploads',
      S3_ENDPOINT: `http://127.0.0.1:${bucketPort}`,
      AWS_ACCESS_KEY_ID: 'a',
      AWS_SECRET_ACCESS_KEY: 'b',
      RELAY_SIGNING_KEYS: RELAY_KEY,
    });
    const upload = async (number: number, bytes: number): Promise<number> => {
      const body = Readable.from(Array(bytes / MEBIBYTE).fill(piece), { highWaterMark: 1 });
      const headers = hasLength ? { 'content-length': String(bytes) } : {};
      const url = `${service.origin}${uploadTarget(`attachments/1/${number}/a`)}`;
      const response = await request(url, { method: 'PUT', headers, body });
      await response.body.dump();
      return response.statusCode;
    };
    for (let round = 0; round < 10; round += 1) await upload(round, 9 * MEBIBYTE);
    const grownBytes = await medianOfThree(async () => {
      const growth = watchGrowth(service.pid);
      const all = Array.from({ length: CONCURRENT_UPLOADS }, (_, number) =>
        upload(number, sizeBytes),
      );
      expect(await Promise.all(all)).toEqual(Array(CONCURRENT_UPLOADS).fill(200));
      return growth();
    });
    expect(receivedBytes).toBeGreaterThanOrEqual(3 * CONCURRENT_UPLOADS * sizeBytes);
    expect(grownBytes).toBeLessThan(maxBytes);
  },
);

const FREE_BYTES = 300 * MEBIBYTE;
const clip = readFileSync('fixtures/video/clip-h264.mp4');
const freeBox = Buffer.from([
  ...[24, 16, 8, 0].map((shift) => FREE_BYTES >> shift),
  ...Buffer.from('free'),
]);

test.each([
  ['a JPEG with a long scan', photo.subarray(0, -5_000), Buffer.from([0xff, 0xd9])],
  ['an MP4 with a large box', Buffer.concat([clip, freeBox]), Buffer.alloc(MEBIBYTE - 8)],
] as const)(
  'removing metadata from %s of 300 MiB takes constant memory',
  { timeout: 300_000 },
  async (_, head, tail) => {
    receivedBytes = 0;
    const service = await useService({
      ...{ STORAGE: 's3', S3_BUCKET: 'uploads', S3_ENDPOINT: `http://127.0.0.1:${bucketPort}` },
      ...{ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', RELAY_SIGNING_KEYS: RELAY_KEY },
      RELAY_STRIP_METADATA: 'true',
    });
    let sentBytes = 0;
    const upload = async (number: number, hasLength: boolean): Promise<void> => {
      const pieces = [head, ...Array(FREE_BYTES / MEBIBYTE - 1).fill(piece), tail];
      const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
      const url = `${service.origin}${uploadTarget(`attachments/1/${number}/a`)}`;
      const body = Readable.from(pieces, { highWaterMark: 1 });
      const headers = hasLength ? { 'content-length': String(bytes) } : {};
      const response = await request(url, { method: 'PUT', headers, body });
      const text = await response.body.text();
      expect([response.statusCode, text]).toEqual([200, '']);
      expect(response.headers['x-metadata']).toMatch(/^(removed|none)$/);
      sentBytes += bytes;
    };
    await upload(0, true);
    await upload(1, false);
    const grownBytes = await medianOfThree(async () => {
      const growth = watchGrowth(service.pid);
      await upload(2, true);
      await upload(3, false);
      return growth();
    });
    expect(receivedBytes).toBe(sentBytes);
    expect(grownBytes).toBeLessThan(32 * MEBIBYTE);
  },
);
