import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import {
  GetObjectTaggingCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { openStream } from '../support/open-stream.ts';
import { runDarkroom } from '../support/processes/command-line.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import { openBucketOrigin } from '../support/s3/s3-bucket.ts';
import { useTestApp } from '../support/test-app.ts';
import { drawLargePhoto, OWNER, photo, truncatedPhoto } from '../support/uploads/photos.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';

// Contract §16 on a real server.

const bucket = await createRgwBucket('metadata-removal');
const s3 = {
  ...{ STORAGE: 's3', S3_ENDPOINT: rgw.endpoint, S3_BUCKET: bucket.bucket },
  ...rgw.credentials,
};
const app = await useTestApp({
  settings: { ...s3, RELAY_STRIP_METADATA: 'true', RELAY_SIGNING_KEYS: RELAY_KEY },
  origin: openBucketOrigin(bucket),
});
const port = await app.listen();
const largePhoto = await drawLargePhoto();
const sizes = [
  ['small', 'length', photo, truncatedPhoto],
  ['small', 'chunks', photo, truncatedPhoto],
  ['large', 'length', largePhoto, largePhoto.subarray(0, -9)],
  ['large', 'chunks', largePhoto, largePhoto.subarray(0, -9)],
] as const;

const read = async (key: string) => buffer((await openStream(openBucketOrigin(bucket), key)).body);

async function listAll() {
  const listing = new ListMultipartUploadsCommand({ Bucket: bucket.bucket });
  const { Uploads = [] } = await bucket.client.send(listing);
  return [...(await bucket.list()), ...Uploads.map(({ Key }) => `${Key} in parts`)];
}

async function put(key: string, body: Uint8Array, framing: 'length' | 'chunks') {
  const blob = new Blob([Buffer.from(body)]);
  const response = await fetch(`http://127.0.0.1:${port}${uploadTarget(key)}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'image/jpeg' },
    ...(framing === 'length' ? { body: blob } : { body: blob.stream(), duplex: 'half' }),
  });
  await response.arrayBuffer();
  return response;
}

test.each(sizes)('a %s upload with %s is stored without its metadata', async (_, framing, sent) => {
  const key = `attachments/${sent.length}/1/${framing}.jpg`;
  const { status, headers } = await put(key, sent, framing);
  expect([status, headers.get('x-metadata')]).toEqual([200, 'removed']);
  const head = await bucket.client.send(new HeadObjectCommand({ Bucket: bucket.bucket, Key: key }));
  expect(head).toMatchObject({ ContentType: 'image/jpeg', ContentLength: sent.length });
  expect(headers.get('etag')).toBe(head.ETag);
  expect((await read(key)).includes(OWNER)).toBe(false);
});

test.each(sizes)(
  'a %s upload with %s that cannot be cleaned leaves nothing',
  async (_, framing, _sent, damaged) => {
    const before = await listAll();
    const { status } = await put('attachments/1/2/damaged.jpg', damaged, framing);
    expect(status).toBe(415);
    expect(await listAll()).toEqual(before);
  },
);

test.each([
  ['with a length', `Content-Length: ${largePhoto.length}\r\n\r\n`, (piece: Buffer) => [piece]],
  [
    'in chunks',
    'Transfer-Encoding: chunked\r\n\r\n',
    (piece: Buffer) => [
      Buffer.from(`${piece.length.toString(16)}\r\n`),
      piece,
      Buffer.from('\r\n'),
    ],
  ],
])('an upload %s whose client disconnects leaves nothing', async (_, head, frame) => {
  const before = await listAll();
  const socket = await app.connect();
  const target = uploadTarget('attachments/1/2/gone.jpg');
  socket.write(`PUT ${target} HTTP/1.1\r\nHost: a\r\n${head}`);
  for (const bytes of frame(largePhoto.subarray(0, -70_000))) {
    await new Promise((resolve) => socket.write(bytes, resolve));
  }
  socket.destroy();
  await once(socket, 'close');
  await expect
    .poll(() => app.log.count('cleaning up an aborted upload failed; a partial upload may remain'))
    .toBe(0);
  await expect.poll(listAll).toEqual(before);
});

test('darkroom strip replaces an object, and keeps all but its metadata', async () => {
  const Key = 'attachments/9/9/kept.jpg';
  const place = { Bucket: bucket.bucket, Key };
  await bucket.client.send(
    new PutObjectCommand({
      ...place,
      Body: photo,
      ContentType: 'image/x-kept',
      CacheControl: 'max-age=7',
      ContentDisposition: 'inline',
      Metadata: { uploader: '17' },
      Tagging: 'kind=a%20b&keep=yes',
    }),
  );
  await bucket.client.send(
    new PutObjectCommand({ ...place, Key: 'attachments/9/10/a', Body: 'x' }),
  );
  const before = await bucket.client.send(new HeadObjectCommand(place));
  const strip = async () => {
    const args = ['strip', '--prefix', 'attachments/9/'];
    const { status, stdout } = await runDarkroom(args, { environment: s3 });
    return [status, ...stdout.toString().trimEnd().split('\n').sort()];
  };
  expect(await strip()).toEqual([
    0,
    '2 originals, 1 not-supported, 1 removed',
    'attachments/9/10/a: not-supported',
    `${Key}: removed`,
  ]);
  const after = await bucket.client.send(new HeadObjectCommand(place));
  const { ETag, LastModified, $metadata, ...kept } = before;
  expect(after).toMatchObject(kept);
  expect(after.ETag).not.toBe(ETag);
  const { TagSet = [] } = await bucket.client.send(new GetObjectTaggingCommand(place));
  expect(TagSet.map(({ Key: name, Value }) => `${name}=${Value}`).sort()).toEqual([
    'keep=yes',
    'kind=a b',
  ]);
  const cleaned = await read(Key);
  expect([cleaned.length, cleaned.includes(OWNER)]).toEqual([photo.length, false]);
  expect((await strip())[1]).toBe('2 originals, 1 not-supported, 1 none');
});
