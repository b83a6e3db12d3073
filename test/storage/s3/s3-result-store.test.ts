import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import { formatResultFile } from '../../../src/storage/result-file.ts';
import { S3ResultStore } from '../../../src/storage/s3/s3-result-store.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import { s3ResultOptions } from '../../support/s3/s3-bucket.ts';
import {
  respondWithError,
  respondWithPage,
  type ScriptedAnswer,
  type ScriptedS3,
  useScriptedS3,
} from '../../support/s3/scripted-s3.ts';
import { addressOf, anySize, resultOf } from '../contracts/result-store.contract.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);
const { signal } = new AbortController();
const address = addressOf();
const file = Buffer.concat(formatResultFile(address, resultOf('a rendering')) ?? []);
const PREFIX = 'renderings/';

let server: ScriptedS3 | undefined;

async function openStore(
  respond: ScriptedAnswer,
  options: { readonly timeoutMs?: number; readonly maxObjectBytes?: number } = {},
): Promise<S3ResultStore> {
  server = await useScriptedS3(respond);
  const bucket = { endpoint: server.endpoint, bucket: 'results' };
  return new S3ResultStore(s3ResultOptions(bucket, { prefix: PREFIX, ...options }));
}

const asked = (method: string, query = ''): number =>
  server?.requests.filter((one) => one.method === method && one.url.search.includes(query))
    .length ?? 0;

describe('a read from a bucket', () => {
  test('is one request for the object below the prefix', async () => {
    const store = await openStore((_request, response) => response.end(file));
    const result = await store.read(address, signal, anySize);
    expect(Buffer.from(result?.body ?? []).toString()).toBe('a rendering');
    expect(server?.requests.map(({ method, url }) => [method, url.pathname])).toEqual([
      ['GET', `/results/${PREFIX}${resultPath(address)}`],
    ]);
  });

  test.each([
    ['cut short', file.subarray(0, -1)],
    [
      'of another address',
      Buffer.concat(formatResultFile(addressOf({ release: 'r9' }), resultOf('x')) ?? []),
    ],
    ['of a proxy', Buffer.from('<html>Welcome</html>')],
    ['empty', Buffer.of()],
  ])('finds nothing in a response %s', async (_name, bytes) => {
    const store = await openStore((_request, response) => response.end(bytes));
    expect(await store.read(address, signal, anySize)).toBeUndefined();
  });

  test('takes nothing of an object that says that it is larger than the largest', async () => {
    const options = { maxObjectBytes: file.length - 1 };
    const store = await openStore((_request, response) => response.end(file), options);
    const refuse = (): never => {
      throw new Error('It was to be read.');
    };
    expect(await store.read(address, signal, refuse)).toBeUndefined();
  });

  test('takes no more than the largest object, and lets the rest go', async () => {
    let sentBytes = 0;
    let isClosed = false;
    const store = await openStore(
      (_request, response) => {
        const send = (): void => {
          sentBytes += 65_536;
          if (!response.destroyed && response.write(Buffer.alloc(65_536))) setImmediate(send);
        };
        response.on('drain', send).on('close', () => {
          isClosed = true;
        });
        send();
      },
      { maxObjectBytes: 300_000 },
    );
    expect(await store.read(address, signal, anySize)).toBeUndefined();
    await expect.poll(() => isClosed).toBe(true);
    expect(sentBytes).toBeGreaterThan(300_000); // so it was not the server that ended
  });

  test.each([
    ['nothing', () => undefined],
    ['a head', (response: ServerResponse) => response.writeHead(200).flushHeaders()],
    ['half', (response: ServerResponse) => response.write(file.subarray(0, 50))],
  ])('ends with the deadline when %s comes', async (_name, begin) => {
    // On a machine that has much else to do, the deadline may come before the request does.
    let open = 0;
    const respond: ScriptedAnswer = (_request, response) => {
      open += 1;
      response.on('close', () => {
        open -= 1;
      });
      begin(response);
    };
    const store = await openStore(respond, { timeoutMs: 100 });
    await expect(store.read(address, signal, anySize)).rejects.toMatchObject({
      message: expect.stringContaining('cannot be read'),
      cause: { message: expect.stringContaining('There was no whole answer within 100 ms.') },
    });
    await expect.poll(() => open).toBe(0);
  });

  test('ends with its signal', async () => {
    const controller = new AbortController();
    const store = await openStore(() => controller.abort(new Error('gone')));
    await expect(store.read(address, controller.signal, anySize)).rejects.toThrow('gone');
  });

  test.each([
    [403, 'InvalidAccessKeyId', 'InvalidAccessKeyId (HTTP 403, attempts: 1): No such key: ***'],
    [404, 'NoSuchBucket', 'NoSuchBucket (HTTP 404, attempts: 1): No such key: ***'],
  ])('that gets %i %s is an error that says why, without a credential', async (...row) => {
    const [status, code, message] = row;
    const store = await openStore((_request, response) =>
      respondWithError(response, status, code, 'No such key: S3RVER'),
    );
    await expect(store.read(address, signal, anySize)).rejects.toMatchObject({
      cause: { message },
    });
  });
});

describe('a write into a bucket', () => {
  test('sends the bytes of a file', async () => {
    const store = await openStore((_request, response) => response.end());
    await store.write(address, resultOf('a rendering'));
    expect(server?.requests.map(({ method, body }) => [method, body.equals(file)])).toEqual([
      ['PUT', true],
    ]);
  });

  test('that is too large, or has too long a key, asks nothing', async () => {
    const options = { maxObjectBytes: file.length };
    const store = await openStore((_request, response) => response.end(), options);
    await store.write(address, resultOf('a rendering.'));
    await store.write(addressOf({ originKey: `a/${'é'.repeat(600)}` }), resultOf('a'));
    expect(server?.requests).toEqual([]);
    await store.write(address, resultOf('a rendering'));
    expect(asked('PUT')).toBe(1);
  });

  test('that fails says why', async () => {
    const store = await openStore((_request, response) =>
      respondWithError(response, 403, 'QuotaExceeded'),
    );
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({
      message: expect.stringContaining('cannot be written'),
      cause: { message: 'QuotaExceeded (HTTP 403, attempts: 1): No.' },
    });
  });
});

describe('a removal from a bucket', () => {
  test('leaves what is no rendering alone, such as originals in the same place', async () => {
    const original = `${PREFIX}avatars/1/0123456789abcdef`;
    const store = await openStore((request, response) => {
      if (request.method === 'GET')
        respondWithPage(response, [original, `${original}/a-b`].map(encodeURIComponent));
      else response.end('<DeleteResult/>');
    });
    expect(await store.remove('avatars/1/')).toBe(0);
    expect(server?.requests.map(({ method }) => method)).toEqual(['GET']);
  });

  const name = '0123456789abcdef-fedcba9876543210';
  const keys = ['a', 'b c', 'd+é', '&<>'].map((hash) => `${PREFIX}avatars/1/${hash}/${name}`);
  const encode = (key: string): string => encodeURIComponent(key).replaceAll('%20', '+');
  const pages: ScriptedAnswer = (request, response) => {
    if (request.method !== 'GET') response.end('<DeleteResult/>');
    else if (request.url.searchParams.has('continuation-token')) {
      respondWithPage(response, keys.slice(2).map(encode));
    } else respondWithPage(response, keys.slice(0, 2).map(encode), 'more/+ please');
  };

  test('goes through all pages, with the prefix of the store', async () => {
    const store = await openStore(pages);
    expect(await store.remove('avatars/1/')).toBe(4);
    const queries = server?.requests.filter(({ method }) => method === 'GET');
    expect(queries?.map(({ url }) => url.searchParams.get('prefix'))).toEqual([
      `${PREFIX}avatars/1/`,
      `${PREFIX}avatars/1/`,
    ]);
    expect(queries?.[1]?.url.searchParams.get('continuation-token')).toBe('more/+ please');
    const bodies = server?.requests.filter(({ method }) => method === 'POST') ?? [];
    const named = bodies.flatMap(({ body }) =>
      [...body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map((match) => match[1]),
    );
    expect(named).toEqual([...keys.slice(0, 3), `${PREFIX}avatars/1/&amp;&lt;&gt;/${name}`]);
  });

  test('gives each request the MD5 that older servers want, and no other sum', async () => {
    const store = await openStore(pages);
    await store.remove('avatars/1/');
    const posts = server?.requests.filter(({ method }) => method === 'POST') ?? [];
    expect(posts).toHaveLength(2);
    for (const { headers, body } of posts) {
      expect(headers['content-md5']).toBe(createHash('md5').update(body).digest('base64'));
      expect(Object.keys(headers).filter((name) => name.includes('checksum'))).toEqual([]);
      expect(headers.authorization).toContain('content-md5');
    }
  });

  test.each([
    [400, 'InvalidRequest'],
    [405, 'MethodNotAllowed'],
    [501, 'NotImplemented'],
  ])('removes one by one where a server responds with %i', async (status, code) => {
    const store = await openStore((request, response) => {
      if (request.method === 'POST') respondWithError(response, status, code);
      else if (request.method === 'DELETE') response.writeHead(204).end();
      else pages(request, response);
    });
    expect(await store.remove('avatars/1/')).toBe(4);
    const removed = server?.requests.filter(({ method }) => method === 'DELETE') ?? [];
    const paths = removed.map(({ url }) => decodeURIComponent(url.pathname));
    expect(paths.sort()).toEqual(keys.map((key) => `/results/${key}`).sort());
  });

  test('fails where the server keeps an object', async () => {
    const store = await openStore((request, response) => {
      if (request.method === 'GET') return pages(request, response);
      response.end(
        '<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>No.</Message></Error></DeleteResult>',
      );
    });
    await expect(store.remove('avatars/1/')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('k is not removed: AccessDenied No.') },
    });
  });

  test('removes nothing where the server lists what was not asked for', async () => {
    const store = await openStore((_request, response) =>
      respondWithPage(response, ['originals/avatar']),
    );
    await expect(store.remove('avatars/1/')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('The server lists originals/avatar') },
    });
    expect(asked('POST') + asked('DELETE')).toBe(0);
  });

  test('of nothing asks once', async () => {
    const store = await openStore((_request, response) => respondWithPage(response, []));
    expect(await store.remove('avatars/1/')).toBe(0);
    expect(server?.requests).toHaveLength(1);
  });
});
