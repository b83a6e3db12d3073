import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { readerOf, type TestPool, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();
const startShared = usePools(afterAll);

describe('a job whose original is read by ranges', () => {
  let pool: TestPool;
  let before: TestPool['renderer']['counters'];
  beforeAll(async () => {
    pool = await startShared();
  });
  beforeEach(() => {
    before = { ...pool.renderer.counters };
  });

  test('gets the bytes that it asks for, and no more than one reply to each request', async () => {
    const { renderer, sayByRanges, say } = pool;
    expect(await sayByRanges('hello')).toMatch(/ hello$/);
    expect(await sayByRanges('read-again 3')).toBe('end end end');
    expect(await say('as a whole')).toMatch(/ as a whole$/);
    expect(renderer.counters).toEqual(before);
  });

  test('ends with a failure of its reader, which costs no worker', async () => {
    const { renderer, sayByRanges } = pool;
    const failure = new MediaError('ORIGIN_ERROR', { cause: new Error('of the storage') });
    const reader = readerOf('read-again 3', () => Promise.reject(failure));
    await expect(sayByRanges(reader)).rejects.toBe(failure);
    // The second and third time, the reader was not asked any more.
    expect(reader.count()).toBe(2);
    expect(await sayByRanges('next')).toMatch(/ next$/);
    expect(renderer.counters).toEqual(before);
  });

  test('may go on without a range that is beyond its limits', async () => {
    const { renderer, sayByRanges } = pool;
    const reader = readerOf('read-again 2', () =>
      Promise.reject(new MediaError('MEDIA_TOO_LARGE')),
    );
    expect(await sayByRanges(reader)).toBe('refused refused');
    expect(renderer.counters).toEqual(before);
  });

  test('ends at its deadline while a read hangs, and the read with it', async () => {
    const { sayByRanges } = pool;
    let isStopped = false;
    const reader = readerOf('read-again 1', (signal) => {
      signal.addEventListener('abort', () => {
        isStopped = true;
      });
      return sleep(60_000, new Uint8Array(), { signal });
    });
    const late = { code: 'TRANSFORM_TIMEOUT' };
    await expect(sayByRanges(reader, { timeoutMs: 300 })).rejects.toMatchObject(late);
    expect(isStopped).toBe(true);
  });

  test('is retried from its beginning where its worker ends', async () => {
    const { renderer, sayByRanges } = await start();
    const crash = sayByRanges('crash');
    await expect(crash).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    expect(renderer.counters).toEqual({ restarts: 2, kills: 0, recycles: 0 });
  });

  test('returns facts, and of these only what belongs to them', async () => {
    const { inspect } = pool;
    const size = { widthPx: 320, heightPx: 180 };
    const video = { codec: 'vp9', codedSize: size, size, orientation: 1 };
    const facts = {
      kind: 'video',
      container: 'webm',
      codec: 'vp09.00.10.08',
      hasAudio: true,
      video,
    };
    const claim = { ...facts, durationS: 1.5, more: 'x', video: { ...video, more: 'x' } };
    expect(await inspect(`facts ${JSON.stringify(claim)}`)).toEqual({ ...facts, durationS: 1.5 });
  });
});

test('a job may go on without a frame that is damaged', async () => {
  const frames = {
    // biome-ignore lint/correctness/useYield: it has nothing to yield
    async *decode() {
      throw new MediaError('UNPROCESSABLE_MEDIA');
    },
  };
  const { renderer, sayByRanges } = await start({ frames });
  expect(await sayByRanges('decode 2 any')).toBe('UNPROCESSABLE_MEDIA|UNPROCESSABLE_MEDIA');
  expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 0 });
});
