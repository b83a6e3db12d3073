import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RelayCapability } from '../../src/contract/signing/relay-capability.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';

const MEBIBYTE = 1024 * 1024;
const Bucket = 'uploads';

/** Where uploads are stored that the platform fetches itself: contract §14. */
const INBOX = 'inbox';

let service: ServiceProcess;
let client: S3Client;
beforeAll(async () => {
  await createRgwBucket(Bucket);
  await createRgwBucket(INBOX);
  const { endpoint } = rgw;
  client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  service = await startService({
    STORAGE: 's3',
    S3_BUCKET: Bucket,
    UPLOADS_S3_BUCKET: INBOX,
    S3_ENDPOINT: endpoint,
    RELAY_SIGNING_KEYS: RELAY_KEY,
    ...rgw.credentials,
  });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  client?.destroy();
});

/** Objects, and uploads in parts that are neither completed nor taken back. */
async function list(Prefix: string, bucket = Bucket): Promise<readonly string[]> {
  const place = { Bucket: bucket, Prefix };
  const { Contents = [] } = await client.send(new ListObjectsV2Command(place));
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand(place));
  return [...Contents, ...Uploads].map(({ Key = '' }) => Key);
}

function begin(target: string, sizeBytes: number | undefined): ClientRequest {
  const headers = sizeBytes === undefined ? {} : { 'Content-Length': sizeBytes };
  const sent = request(`${service.origin}${target}`, { method: 'PUT', agent: false, headers });
  sent.on('error', () => undefined);
  return sent;
}

/** A body of zeros that takes no memory. */
function* zeros(sizeBytes: number): Generator<Buffer> {
  const piece = Buffer.alloc(MEBIBYTE);
  for (let left = sizeBytes; left > 0; left -= piece.length) {
    yield left < piece.length ? piece.subarray(0, left) : piece;
  }
}

async function upload(
  key: string,
  sizeBytes: number,
  {
    tells = true,
    query = '',
    ...terms
  }: Partial<RelayCapability> & { tells?: boolean; query?: string } = {},
) {
  const sent = begin(uploadTarget(key, terms) + query, tells ? sizeBytes : undefined);
  const answer = once(sent, 'response');
  Readable.from(zeros(sizeBytes)).pipe(sent);
  const [response] = (await answer) as [IncomingMessage];
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, etag: response.headers.etag, body };
}

const ways = [
  ['with its length', true, 20 * MEBIBYTE + 1],
  ['without its length', false, 20 * MEBIBYTE + 1],
  ['small, without its length', false, 1_000],
] as const;

describe.each(ways)('an upload to Ceph RGW %s', (name, tells, sizeBytes) => {
  const key = `attachments/1/${sizeBytes}/${tells}`;

  test('is stored whole, with the ETag of the bucket', async () => {
    const stored = await upload(key, sizeBytes, { tells, contentType: 'video/mp4' });
    expect([stored.status, stored.body]).toEqual([200, '']);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: key }));
    expect(head).toMatchObject({ ContentLength: sizeBytes, ContentType: 'video/mp4' });
    expect(stored.etag).toBe(head.ETag);
  });

  test('leaves nothing in the bucket if its client dies', { timeout: 60_000 }, async () => {
    const dying = `${key}-${name.length}`;
    const sent = begin(uploadTarget(dying), tells ? sizeBytes + 1 : undefined);
    for (const piece of zeros(sizeBytes)) {
      // Until the system has taken it: the service reads no further than it writes.
      await new Promise((resolve) => sent.write(piece, resolve));
    }
    sent.destroy();
    const lineOf = () =>
      service
        .output()
        .split('\n')
        .find((line) => line.includes(dying));
    await expect.poll(lineOf, { timeout: 30_000 }).toContain('"status":499');
    // The line is written when the client is gone; the storage is told at the same time.
    await expect.poll(() => list(dying), { timeout: 20_000 }).toEqual([]);
  });
});

describe('two concurrent uploads to one key', () => {
  test.each([true, false])('store one of them; with Content-Length: %s', async (tells) => {
    const key = `attachments/2/2/${tells}`;
    const stored = await Promise.all([1, 2].map(() => upload(key, 9 * MEBIBYTE, { tells })));
    expect(stored.map(({ status }) => status).sort()[0]).toBe(200);
    expect(await list(key)).toEqual([key]);
  });
});

describe('a part of an upload that the platform has begun', () => {
  const key = 'attachments/3/3/parts.bin';

  test('is stored, and completed by the platform', async () => {
    const { UploadId: uploadId = '' } = await client.send(
      new CreateMultipartUploadCommand({ Bucket, Key: key }),
    );
    const Parts = [];
    for (const [partNumber, size] of [
      [1, 5 * MEBIBYTE],
      [2, 1_000],
    ] as const) {
      const query = `&uploadId=${encodeURIComponent(uploadId)}&partNumber=${partNumber}`;
      const part = { part: { uploadId, partNumber }, query };
      expect((await upload(key, size, { ...part, tells: false })).status).toBe(411);
      const wrong = { ...part, contentType: 'image/png' };
      expect((await upload(key, size, wrong)).status).toBe(partNumber === 1 ? 415 : 200);
      const { status, etag } = await upload(key, size, part);
      expect(status).toBe(200);
      Parts.push({ PartNumber: partNumber, ETag: etag });
    }
    const MultipartUpload = { Parts };
    await client.send(
      new CompleteMultipartUploadCommand({ Bucket, Key: key, UploadId: uploadId, MultipartUpload }),
    );
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: key }));
    expect(head.ContentLength).toBe(5 * MEBIBYTE + 1_000);
  });

  test('is a 404 if the multipart upload does not exist', async () => {
    const part = { uploadId: '2~nothing', partNumber: 1 };
    const query = '&uploadId=2~nothing&partNumber=1';
    expect(await upload(key, 1_000, { part, query })).toMatchObject({ status: 404 });
  });
});
