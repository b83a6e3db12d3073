import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { type JobProgress, reply } from '../../src/workers/job-requests.ts';
import { WorkerExited } from '../../src/workers/worker-errors.ts';
import { noLosses, raw, readerOf, sharePool } from '../support/processes/worker-pool.ts';

const damagedFrames = {
  // biome-ignore lint/correctness/useYield: it has nothing to yield
  async *decode() {
    throw new MediaError('UNPROCESSABLE_MEDIA');
  },
};

describe('a job whose original is read by ranges', () => {
  const shared = sharePool({ frames: damagedFrames });

  test('receives the requested bytes, in one reply to each request', async () => {
    const { sayByRanges, say } = shared.pool;
    expect(await sayByRanges('hello')).toMatch(/ hello$/);
    expect(await sayByRanges('read-again 3')).toBe('end end end');
    expect(await say('as a whole')).toMatch(/ as a whole$/);
    expect(shared.counted()).toEqual(noLosses);
  });

  test('fails with the error of its reader, and keeps its worker', async () => {
    const { sayByRanges } = shared.pool;
    const failure = new MediaError('ORIGIN_ERROR', { cause: new Error('of the storage') });
    const reader = readerOf('read-again 3', () => Promise.reject(failure));
    await expect(sayByRanges(reader)).rejects.toBe(failure);
    // The reader was not called the second and third time.
    expect(reader.count()).toBe(2);
    expect(await sayByRanges('next')).toMatch(/ next$/);
    expect(shared.counted()).toEqual(noLosses);
  });

  test('may continue after a rejected range or a damaged frame', async () => {
    const { sayByRanges } = shared.pool;
    const tooLarge = new MediaError('MEDIA_TOO_LARGE');
    const reader = readerOf('read-again 2', () => Promise.reject(tooLarge));
    expect(await sayByRanges(reader)).toBe('refused refused');
    expect(await sayByRanges('decode 2 any')).toBe('UNPROCESSABLE_MEDIA|UNPROCESSABLE_MEDIA');
    expect(shared.counted()).toEqual(noLosses);
  });

  test('returns metadata without unknown fields', async () => {
    const size = { widthPx: 320, heightPx: 180 };
    const video = { codec: 'vp9', codedSize: size, size, orientation: 1 };
    const metadata = { kind: 'video', container: 'webm', codec: 'vp09.00.10.08', durationS: 1.5 };
    const claim = { ...metadata, more: 'x', video: { ...video, more: 'x' } };
    const message = { kind: 'inspected', metadata: claim, rssBytes: 1 };
    expect(await shared.pool.inspect(raw(message))).toEqual({ ...metadata, video });
  });

  test('is retried from its beginning if its worker ends', async () => {
    await expect(shared.pool.sayByRanges('crash')).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
    });
    expect(shared.counted()).toEqual({ ...noLosses, restarts: 2 });
  });

  test('ends at its deadline while a read hangs, and aborts the read', async () => {
    const read = vi.fn((signal: AbortSignal) => sleep(60_000, new Uint8Array(), { signal }));
    const reader = readerOf('read-again 1', read);
    const late = { code: 'TRANSFORM_TIMEOUT' };
    await expect(shared.pool.sayByRanges(reader, { timeoutMs: 300 })).rejects.toMatchObject(late);
    expect(read).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ aborted: true }));
  });
});

test('a job whose worker dies while it receives a frame fails because of the exit, not the broken channel', async () => {
  const channel = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => setImmediate(done, new Error('write EPIPE')),
  });
  const exit = new WorkerExited('SIGKILL');
  const replying = new AbortController();
  channel.once('error', () => setImmediate(() => replying.abort(exit)));
  const progress: JobProgress = { hasBegun: true, decodes: 1, failure: undefined };
  const frame = async function* () {
    yield Buffer.alloc(1024 ** 2);
  };
  const replied = reply(channel as Socket, frame, progress, replying.signal);
  await expect(replied).rejects.toBe(exit);
  // With the error of the channel here, the job would fail instead of being retried.
  expect(progress.failure).toBeUndefined();
});
