import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { ByteRange } from '../../../src/pipeline/ports.ts';
import { S3Origin } from '../../../src/storage/s3/s3-origin.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import { s3Options } from '../../support/s3/s3-bucket.ts';
import {
  respondWithError,
  type ScriptedAnswer,
  useScriptedS3,
} from '../../support/s3/scripted-s3.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);

async function readWith(
  respond: ScriptedAnswer,
  options: { signal?: AbortSignal; range?: ByteRange } = {},
) {
  const { endpoint } = await useScriptedS3(respond);
  const origin = new S3Origin(s3Options({ endpoint, bucket: 'originals' }));
  const object = await origin.read('a', { signal: new AbortController().signal, ...options });
  object.body.destroy();
  return object;
}

const partial: ScriptedAnswer = (_, response) => {
  const head = { ETag: '"a"', 'Content-Range': 'bytes 0-3/9', 'Content-Length': '4' };
  response.writeHead(206, head).end('1234');
};
const unsatisfiable: ScriptedAnswer = (_, response) =>
  respondWithError(response, 416, 'InvalidRange');

describe('the response of a bucket', () => {
  test.each([
    ['a part', partial, /206/],
    ['no such part', unsatisfiable, /^InvalidRange \(HTTP 416/],
  ] as const)('is a failure where it is %s, and nobody has asked for one', async (...row) => {
    const [, respond, reason] = row;
    await expect(readWith(respond)).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { message: expect.stringMatching(reason) },
    });
  });

  test('is a part, or that there is no such part, where one is asked for', async () => {
    const range = { first: 0, last: 3 };
    expect(await readWith(partial, { range })).toMatchObject({ sizeBytes: 9 });
    await expect(readWith(unsatisfiable, { range })).rejects.toMatchObject({
      code: 'RANGE_NOT_SATISFIABLE',
    });
  });
});

describe('an error without an end', () => {
  /** Sends a piece again and again, as long as it is taken; tells how many bytes were by the end. */
  const endless = (status: number) => {
    const sent = { bytes: 0, hasClosed: false };
    const pour = async (response: ServerResponse): Promise<void> => {
      const piece = Buffer.alloc(16 * 1024, 'x');
      while (!response.destroyed) {
        sent.bytes += piece.length;
        if (!response.write(piece))
          await Promise.race([once(response, 'drain'), once(response, 'close')]);
        await new Promise(setImmediate);
      }
      sent.hasClosed = true;
    };
    const respond: ScriptedAnswer = (_, response) => {
      response.writeHead(status, { 'Content-Type': 'application/xml' });
      response.write('<Error><Code>Endless</Code><Message>');
      void pour(response);
    };
    return { respond, sent };
  };

  test.each([403, 404, 500])(
    'of status %i is read up to a bound, and its connection closed',
    async (status) => {
      const { respond, sent } = endless(status);
      await expect(readWith(respond)).rejects.toMatchObject({
        code: 'ORIGIN_ERROR',
        cause: { message: expect.stringContaining(`HTTP ${status}`) },
      });
      await expect.poll(() => sent.hasClosed).toBe(true);
      // What the system holds on the way to us is sent, too.
      expect(sent.bytes).toBeLessThan(32 * 1024 * 1024);
    },
  );

  test('that trickles ends with its request', async () => {
    const call = new AbortController();
    let closed: Promise<unknown> | undefined;
    const reading = readWith(
      (_, response) => {
        closed = once(response, 'close');
        response.writeHead(500, { 'Content-Type': 'application/xml' });
        response.write('<Error>', () => call.abort(new Error('the deadline')));
      },
      { signal: call.signal },
    );
    await expect(reading).rejects.toThrow('the deadline');
    await closed;
  });

  test('that is not so long says what it says', async () => {
    const respond: ScriptedAnswer = (_, response) =>
      respondWithError(response, 403, 'AccessDenied', 'x'.repeat(60_000));
    await expect(readWith(respond)).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/^AccessDenied \(HTTP 403.*: x{300}$/) },
    });
  });
});
