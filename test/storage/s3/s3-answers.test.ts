import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import type { ByteRange } from '../../../src/pipeline/ports.ts';
import { openStream, signal } from '../../support/open-stream.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import {
  openBucketListing,
  openBucketObjects,
  openBucketOrigin,
  openBucketStore,
  openBucketWriter,
} from '../../support/s3/s3-bucket.ts';
import {
  type RespondScript,
  respondWithError,
  respondWithPage,
  useScriptedS3,
} from '../../support/s3/scripted-s3.ts';
import { list } from '../contracts/origin-listing.contract.ts';
import { addressOf, ignoreSize, resultOf } from '../contracts/result-store.contract.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);

const address = addressOf();
const PREFIX = 'media/';

/** Opens all ports of a bucket with a scripted server, which records requests. */
async function open(respond: RespondScript) {
  const { endpoint, requests } = await useScriptedS3(respond);
  const place = { endpoint, bucket: 'bucket' };
  return {
    requests,
    origin: openBucketOrigin(place),
    listing: openBucketListing(place, PREFIX),
    store: openBucketStore(place, PREFIX),
    writer: openBucketWriter(place),
  };
}

describe('an original in a bucket', () => {
  const answer =
    (status: number, head: Record<string, string>, body = ''): RespondScript =>
    (_, response) => {
      response.writeHead(status, { 'Content-Length': body.length, ...head }).end(body);
    };
  const partOf = (range: string, body: string) =>
    answer(206, { ETag: '"a"', 'Content-Range': range }, body);
  const read = async (respond: RespondScript, range?: ByteRange) => {
    const { origin } = await open(respond);
    const object = await openStream(origin, 'a', { range });
    object.body.destroy();
    return object;
  };

  test.each([403, 404, 500])(
    'is an ORIGIN_ERROR if the body of a %i never ends; the body is read up to a limit',
    async (status) => {
      let sentBytes = 0;
      let sending: Promise<void> | undefined;
      const reading = read((_, response) => {
        response.writeHead(status, { 'Content-Type': 'application/xml' });
        const pieces = function* () {
          for (; ; sentBytes += 65_536) yield Buffer.alloc(65_536, 'x');
        };
        sending = pipeline(pieces, response).catch(() => undefined); // cut off
      });
      await expect(reading).rejects.toMatchObject({
        code: 'ORIGIN_ERROR',
        cause: { message: expect.stringContaining(`HTTP ${status}`) },
      });
      await sending;
      // Includes the buffers of the system.
      expect(sentBytes).toBeLessThan(32 * 1024 * 1024);
    },
  );

  const ofNine = { first: 1, last: 9 };
  const unsatisfiable: RespondScript = (_, it) => respondWithError(it, 416, 'InvalidRange');
  test.each<[what: string, RespondScript, range: ByteRange | undefined, RegExp]>([
    ['a part instead of all bytes', partOf('bytes 0-3/9', '1234'), undefined, /HTTP 206/],
    ['a 416 for a request without range', unsatisfiable, undefined, /^InvalidRange \(HTTP 416/],
    [
      'a part without Content-Range',
      answer(206, { ETag: '"a"' }, 'the whole'),
      ofNine,
      /range undefined/,
    ],
    ['a part that begins earlier', partOf('bytes 0-8/9', 'the whole'), ofNine, /range bytes 0-8/],
    ['a part that ends earlier', partOf('bytes 1-7/9', 'part of'), ofNine, /range bytes 1-7/],
    ['less than it declares', partOf('bytes 1-9/20', 'part of'), ofNine, /range bytes 1-9/],
    ['a part without total size', partOf('bytes 1-8/*', 'he whole'), ofNine, /range bytes 1-8/],
  ])('is an ORIGIN_ERROR if the server sends %s', async (_, respond, range, message) => {
    const cause = { message: expect.stringMatching(message) };
    await expect(read(respond, range)).rejects.toMatchObject({ code: 'ORIGIN_ERROR', cause });
  });

  test('is read in ranges with the ETag of the first; a 412 means that it was replaced', async () => {
    const { origin, requests } = await open((_, response) =>
      respondWithError(response, 412, 'PreconditionFailed'),
    );
    const options = { signal, range: { first: 4, last: 7 }, ifMatch: 'abc-2' };
    await expect(origin.open('a', options)).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { name: 'StateMismatch' },
    });
    const headers = requests.map(({ headers }) => [headers.range, headers['if-match']]);
    expect(headers).toEqual([['bytes=4-7', '"abc-2"']]);
  });

  test.each([
    ['the complete object', answer(200, { ETag: '"a"' })],
    ['an unsatisfiable range', answer(416, {})],
  ])('has no range if it is empty, even if the server responds with %s', async (_, respond) => {
    const range = { first: 0, last: 9 };
    const code = 'RANGE_NOT_SATISFIABLE';
    await expect(read(respond, range)).rejects.toMatchObject({ code });
  });

  test('has the same ETag with any quoting by the server', async () => {
    for (const ETag of ['"abc"', 'W/"abc"', 'abc'])
      expect(await read(answer(200, { ETag }, 'x'))).toMatchObject({ etag: 'abc' });
  });

  test('is UNKNOWN_MEDIA, without a request, under a key that S3 rejects or a proxy would change', async () => {
    const { origin, requests } = await open((_, response) => response.end());
    const long = ['x'.repeat(1_025), 'ü'.repeat(513)];
    for (const key of [...long, '/avatars/1', 'avatars/../icons/1', 'avatars//1', './avatars', ''])
      await expect(origin.open(key, { signal })).rejects.toMatchObject({ code: 'UNKNOWN_MEDIA' });
    expect(requests).toEqual([]);
  });

  test('is uploaded even if the server sends no ETag and does not respond to HEAD', async () => {
    const stopping = new AbortController();
    const { writer, requests } = await open(({ method }, response) => {
      if (method === 'PUT') response.end();
      else stopping.abort(); // HEAD: the client disconnects, and no response is sent
    });
    const chunks = (async function* () {
      yield Buffer.from('x');
    })();
    expect(await writer.write('a', chunks, { signal: stopping.signal, sizeBytes: 1 })).toBe('');
    expect(requests.map(({ method }) => method)).toEqual(['PUT', 'HEAD']);
  });
});

describe('a listing of a bucket', () => {
  const listAll = async (respond: RespondScript, most?: number) => {
    const { listing, requests } = await open(respond);
    const keys = (await list(listing, 'emojis/', most)).map(({ key }) => key);
    return { keys, requests };
  };
  const twoPages: RespondScript = ({ url }, response) => {
    if (url.searchParams.has('continuation-token'))
      respondWithPage(response, ['media/emojis/d%2B%C3%A9+%26']);
    else respondWithPage(response, ['media/emojis/1', 'media/emojis/2'], 'a/+ b');
  };

  test('requests one page after another, until the caller has enough', async () => {
    const { keys, requests } = await listAll(twoPages);
    expect(keys).toEqual(['emojis/1', 'emojis/2', 'emojis/d+é &']);
    const queries = requests.map(({ url }) => url.searchParams);
    expect(queries.map((query) => query.get('prefix'))).toEqual(['media/emojis/', 'media/emojis/']);
    expect(queries.map((query) => query.get('continuation-token'))).toEqual([null, 'a/+ b']);
    expect((await listAll(twoPages, 2)).requests).toHaveLength(1);
  });

  test('omits keys that no request can name', async () => {
    const page = ['media/emojis/', 'media/emojis/1', 'media/emojis/../2', 'media/emojis//3'];
    const { keys } = await listAll((_, response) => respondWithPage(response, page));
    expect(keys).toEqual(['emojis/1']);
  });

  const failing: readonly (readonly [string, RespondScript, string])[] = [
    ['a refusal', (_, it) => respondWithError(it, 403, 'AccessDenied'), 'AccessDenied'],
    [
      'a truncated page without a token',
      (_, it) => respondWithPage(it, ['media/emojis/1'], ''),
      'truncated',
    ],
    [
      'a key outside the prefix',
      (_, it) => respondWithPage(it, ['secrets/1']),
      'lists secrets/1 for',
    ],
  ];
  test.each(failing)('is an ORIGIN_ERROR after %s', async (_, respond, reason) => {
    const cause = { message: expect.stringContaining(reason) };
    await expect(listAll(respond)).rejects.toMatchObject({ code: 'ORIGIN_ERROR', cause });
  });
});

describe('a rendering in a bucket', () => {
  test('is a miss if it is larger than 32 MiB by its Content-Length', async () => {
    const server = await open((_, response) =>
      response.writeHead(200, { 'Content-Length': 40 * 1024 ** 2 }).write('x'),
    );
    const refuse = (): never =>
      expect.fail('The rendering must be a miss, but its size was reported.');
    expect(await server.store.read(address, signal, refuse)).toBeUndefined();
  });

  test('is a miss while the bodies being read take 128 MiB together', async () => {
    const { store } = await open((_, response) =>
      response.writeHead(200, { 'Content-Length': 30 * 1024 ** 2 }).write('x'),
    );
    const controller = new AbortController();
    const sizes: number[] = [];
    const note = (sizeBytes: number): void => void sizes.push(sizeBytes);
    const read = () => store.read(address, controller.signal, note);
    const reads = Array.from({ length: 4 }, () => expect(read()).rejects.toThrow('gone'));
    await expect.poll(() => sizes).toHaveLength(4);
    expect(await read()).toBeUndefined();
    expect(sizes).toHaveLength(4);
    controller.abort(new Error('gone'));
    await Promise.all(reads);
    const later = new AbortController();
    const next = store.read(address, later.signal, () => later.abort(new Error('begun')));
    await expect(next).rejects.toThrow('begun');
  });

  test.each([
    ['nothing', () => undefined],
    ['half', (it: ServerResponse) => it.writeHead(200, { 'Content-Length': 99 }).write('DKR1')],
  ])(
    'aborts its request if the signal is aborted after the server has sent %s',
    async (_name, begin) => {
      const controller = new AbortController();
      let closed: Promise<unknown> | undefined;
      const { store } = await open((_, response) => {
        closed = once(response, 'close');
        begin(response);
        setTimeout(() => controller.abort(new Error('gone')), 50);
      });
      await expect(store.read(address, controller.signal, ignoreSize)).rejects.toThrow('gone');
      await closed;
    },
  );
});

describe('a purge in a bucket', () => {
  test('fails with the reason from the server, like a write', async () => {
    const { store } = await open(({ method }, response) => {
      const key = `${PREFIX}avatars/1/a/0123456789abcdef-fedcba9876543210`;
      if (method === 'GET') respondWithPage(response, [key]);
      else respondWithError(response, 403, 'QuotaExceeded');
    });
    const cause = { message: 'QuotaExceeded (HTTP 403, attempts: 1): No.' };
    const failing = (verb: string) => ({ message: expect.stringContaining(verb), cause });
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject(failing('written'));
    await expect(store.remove('avatars/1/')).rejects.toMatchObject(failing('removed'));
  });

  test('fails if the server lists objects outside the prefix, and keeps objects other than renderings', async () => {
    const original = `${PREFIX}avatars/1/0123456789abcdef`;
    const outside = await open((_, response) => respondWithPage(response, ['originals/avatar']));
    const cause = { message: expect.stringContaining('The server lists originals/avatar') };
    await expect(outside.store.remove('avatars/1/')).rejects.toMatchObject({ cause });
    const below = await open((_, response) =>
      respondWithPage(response, [original, `${original}/a-b`].map(encodeURIComponent)),
    );
    expect(await below.store.remove('avatars/1/')).toBe(0);
    for (const { requests } of [outside, below]) {
      expect(requests.map(({ method }) => method)).toEqual(['GET']);
    }
  });
});

test.each(['POST', 'PUT'])(
  'a multipart upload whose first %s fails ends its source',
  async (failing) => {
    const { writer } = await open(({ method }, response) => {
      if (method === failing) return respondWithError(response, 403, 'AccessDenied');
      response.end(method === 'POST' ? '<a><UploadId>1</UploadId></a>' : '');
    });
    let isEnded = false;
    const chunks = async function* () {
      try {
        for (;;) yield Buffer.alloc(1_000_000);
      } finally {
        isEnded = true;
      }
    };
    const written = writer.write('a', chunks(), { signal, sizeBytes: undefined });
    await expect(written).rejects.toThrow();
    expect(isEnded).toBe(true);
  },
);

describe('a shared object in a bucket', () => {
  /** The object does not change; the write has this response status. */
  const writeWith = async (status: number, found = 'old') => {
    const { endpoint } = await useScriptedS3((request, response) => {
      const head = { ETag: '"a"', 'Content-Length': found.length };
      if (request.method === 'PUT') respondWithError(response, status, 'Failure');
      else response.writeHead(200, head).end(request.method === 'HEAD' ? undefined : found);
    });
    const objects = openBucketObjects({ endpoint, bucket: 'bucket' });
    return objects.write('', Buffer.from('new'), { tag: 'a' });
  };

  test('is not written if a concurrent write makes the server return 409', async () => {
    expect(await writeWith(409)).toBeUndefined();
  });

  test('is written if the first attempt has succeeded without a response', async () => {
    expect(await writeWith(412, 'new')).toBe('a');
  });

  test('cannot be written if the server fails', async () => {
    await expect(writeWith(500)).rejects.toThrow('cannot be written');
  });
});

describe('an original that is replaced with ifMatch', () => {
  async function* chunks() {
    yield Buffer.from('new');
  }
  /** A server with an object of tag `a` and its own comparison of tags. */
  const openWith = (isMet: (condition: string | undefined) => boolean) =>
    open(({ method, headers }, response) => {
      if (method === 'HEAD') {
        const kept = { 'x-amz-meta-kept': 'yes', 'Cache-Control': 'max-age=7' };
        const tagged = { 'Content-Type': 'image/x', 'x-amz-tagging-count': '1' };
        response.writeHead(200, { ETag: '"a"', ...tagged, ...kept }).end();
      } else if (method === 'GET') {
        const tag = '<Tag><Key>a b</Key><Value>c+d=&amp;</Value></Tag>';
        response.end(`<Tagging><TagSet>${tag}</TagSet></Tagging>`);
      } else if (isMet(headers['if-match'])) {
        response.writeHead(200, { ETag: '"b"' }).end();
      } else {
        respondWithError(response, 412, 'PreconditionFailed');
      }
    });
  const options = { signal, sizeBytes: 3, ifMatch: 'a' };

  test('keeps its type, user metadata and tags', async () => {
    const { writer, requests } = await openWith((condition) => condition === '"a"');
    expect(await writer.write('key', chunks(), options)).toBe('b');
    expect(requests.at(-1)?.headers).toMatchObject({
      'content-type': 'image/x',
      'cache-control': 'max-age=7',
      'x-amz-meta-kept': 'yes',
      'x-amz-tagging': 'a%20b=c%2Bd%3D%26',
    });
  });

  test('is replaced by the second attempt if the server compares tags without quotes', async () => {
    const { writer } = await openWith((condition) => condition === 'a');
    const first = writer.write('key', chunks(), options);
    await expect(first).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(await writer.write('key', chunks(), options)).toBe('b');
  });

  test('is not replaced if the server rejects every condition', async () => {
    const { writer } = await openWith(() => false);
    for (const code of ['OVERLOADED', 'PRECONDITION_FAILED', 'PRECONDITION_FAILED']) {
      await expect(writer.write('key', chunks(), options)).rejects.toMatchObject({ code });
    }
  });

  test('is not replaced if its tag differs', async () => {
    const { writer, requests } = await openWith(() => true);
    const written = writer.write('key', chunks(), { ...options, ifMatch: 'other' });
    await expect(written).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
    expect(requests.map(({ method }) => method)).toEqual(['HEAD']);
  });
});
