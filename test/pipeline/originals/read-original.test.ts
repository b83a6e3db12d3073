import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { peekOriginal } from '../../../src/pipeline/originals/passthrough.ts';
import { openOriginal, readOriginal } from '../../../src/pipeline/originals/read-original.ts';
import type { Origin, OriginObject } from '../../../src/pipeline/ports.ts';
import { Semaphore } from '../../../src/pipeline/semaphore.ts';

const limits = { firstByteTimeoutMs: 50, wholeBodyTimeoutMs: 50, maxOriginalBytes: 10 };
const accessTo = (origin: Origin) => ({
  origin,
  limits,
  semaphore: new Semaphore({ slots: 1, maxWaiting: 0, maxWaitMs: 1_000 }),
});
const never = new AbortController().signal;

function objectOf(body: Readable, sizeBytes: number): OriginObject {
  return { sizeBytes, etag: 'x', lastModified: undefined, storedContentType: undefined, body };
}

/** A body that says this much and then nothing more, without an end. */
function stalling(...chunks: string[]): Readable {
  const body = new Readable({ read: () => undefined });
  for (const chunk of chunks) body.push(chunk);
  return body;
}

/** A body that breaks when it is read. */
function breaking(): Readable {
  const body: Readable = new Readable({ read: () => body.destroy(new Error('reset')) });
  return body;
}

const bodyOf = (...chunks: string[]): Readable =>
  Readable.from(
    chunks.map((chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );

describe('opening an original', () => {
  const originOf = (read: Origin['read']): Origin => ({ read });

  test('waits no longer than the first-byte deadline, and lets go of what comes later', async () => {
    const late = bodyOf('late');
    const origin = originOf(
      () => new Promise((resolve) => setTimeout(() => resolve(objectOf(late, 4)), 80)),
    );
    await expect(openOriginal(accessTo(origin), 'a', never)).rejects.toMatchObject({
      code: 'ORIGIN_TIMEOUT',
    });
    await expect.poll(() => late.destroyed).toBe(true);
  });

  test('ends with the client: before the response, and in the body', async () => {
    const client = new AbortController();
    const hanging = openOriginal(
      accessTo(originOf(() => new Promise(() => undefined))),
      'a',
      client.signal,
    );
    client.abort(new Error('gone'));
    await expect(hanging).rejects.toThrow('gone');

    const second = new AbortController();
    const body = stalling('some');
    await openOriginal(accessTo(originOf(async () => objectOf(body, 9))), 'a', second.signal);
    second.abort();
    await expect.poll(() => body.destroyed).toBe(true);
  });
});

describe('reading an original', () => {
  const read = (body: Readable, sizeBytes: number, signal = never) =>
    readOriginal(objectOf(body, sizeBytes), limits, signal);

  test('gives all its bytes', async () => {
    expect(Buffer.from(await read(bodyOf('ab', 'cd'), 4)).toString()).toBe('abcd');
    expect(await read(bodyOf(), 0)).toHaveLength(0);
    expect(await read(bodyOf('0123456789'), 10)).toHaveLength(10);
  });

  test.each([
    [4, 4, undefined],
    [4, 3, 'ORIGIN_ERROR'], // it has become shorter
    [11, 11, 'MEDIA_TOO_LARGE'],
  ])('of %d bytes takes %d that came at once: %s', async (sizeBytes, came, code) => {
    const { body: _, ...state } = objectOf(bodyOf(), sizeBytes);
    const reading = readOriginal({ ...state, bytes: Buffer.alloc(came) }, limits, never);
    if (code === undefined) expect(await reading).toHaveLength(came);
    else await expect(reading).rejects.toMatchObject({ code });
  });

  test('refuses what is too large, by its size, before a byte is read', async () => {
    const body = stalling();
    await expect(read(body, 11)).rejects.toMatchObject({ code: 'MEDIA_TOO_LARGE' });
    expect(body.destroyed).toBe(true);
  });

  test.each([
    ['ends early', () => bodyOf('abc'), 4],
    ['goes on beyond its size', () => bodyOf('abc', 'def'), 4],
    ['goes on beyond its size in its last chunk', () => bodyOf('abcdef'), 4],
    ['breaks', breaking, 4],
  ] as const)('takes a body that %s for a failing origin', async (_, create, sizeBytes) => {
    const object = create();
    const outcome = read(object, sizeBytes);
    await expect(outcome).rejects.toMatchObject({ code: 'ORIGIN_ERROR' });
    expect(object.destroyed).toBe(true);
  });

  test('waits no longer than the deadline for the whole body', async () => {
    const body = stalling('ab');
    await expect(read(body, 4)).rejects.toMatchObject({ code: 'ORIGIN_TIMEOUT' });
    await expect.poll(() => body.destroyed).toBe(true);
  });

  test('ends with the client', async () => {
    const client = new AbortController();
    const body = stalling('ab');
    const reading = read(body, 4, client.signal);
    client.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
    await expect.poll(() => body.destroyed).toBe(true);
  });
});

describe('peeking at an original', () => {
  const peek = (body: Readable, sizeBytes: number, count: number) =>
    peekOriginal(objectOf(body, sizeBytes), count, limits, never);
  const rest = async (body: Readable): Promise<string> => {
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  };

  test.each([0, 1, 2, 3, 5, 6, 100])('at %i bytes takes none of them away', async (count) => {
    const body = bodyOf('ab', 'cd', 'ef');
    expect(Buffer.from(await peek(body, 6, count)).toString()).toBe('abcdef'.slice(0, count));
    expect(await rest(body)).toBe('abcdef');
  });

  test('of an empty object sees nothing', async () => {
    const body = bodyOf();
    expect(await peek(body, 0, 100)).toHaveLength(0);
    expect(await rest(body)).toBe('');
  });

  test('waits no longer than the deadline, and fails with the transfer', async () => {
    const stalled = stalling('a');
    await expect(peek(stalled, 10, 5)).rejects.toMatchObject({ code: 'ORIGIN_TIMEOUT' });
    expect(stalled.destroyed).toBe(true);
    await expect(peek(bodyOf('abc'), 10, 5)).rejects.toMatchObject({ code: 'ORIGIN_ERROR' });
    const broken = stalling('a');
    const peeking = peek(broken, 10, 5);
    broken.on('error', () => undefined);
    broken.destroy(new Error('reset'));
    await expect(peeking).rejects.toMatchObject({ code: 'ORIGIN_ERROR' });
  });
});
