import { beforeEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { defer } from '../../support/deferred.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const url = '/icons/1/ab.webp?size=16';
const key = 'icons/1/ab';

let origin: MemoryOrigin;
let store: MemoryResultStore;

beforeEach(() => {
  origin = new MemoryOrigin();
  store = new MemoryResultStore();
  origin.put(key, samples.jpeg);
});

/** One more process before the same origin and the same store. */
const start = (settings: Record<string, string> = {}): Promise<TestApp> =>
  useTestApp({ origin, resultStore: store, settings });

async function get(app: TestApp, target = url) {
  const { statusCode, headers, rawPayload } = await app.get(target);
  return { status: statusCode, headers, cacheStatus: headers['cache-status'], body: rawPayload };
}

/** Has renderings made by a process of its own, and waits until they are stored. */
async function fill(...targets: string[]) {
  const app = await start();
  const responses = [];
  for (const target of targets) responses.push(await get(app, target));
  await expect.poll(() => store.paths.length).toBe(targets.length);
  return responses;
}

describe('a new process before a filled store', () => {
  it('renders nothing that was rendered already', async () => {
    const targets = [16, 20, 22, 24].map((size) => `/icons/1/ab.webp?size=${size}`);
    const first = await fill(...targets);
    const app = await start();
    for (const [index, target] of targets.entries()) {
      const again = await get(app, target);
      expect(again.body.equals(first[index]?.body ?? Buffer.alloc(0))).toBe(true);
      expect(again.headers.etag).toBe(first[index]?.headers.etag);
      expect(again.headers['last-modified']).toBe(first[index]?.headers['last-modified']);
      expect(again.headers['content-type']).toBe('image/webp');
      expect(again.cacheStatus).toBe(
        // Once the origin is asked whether the original is the same, for all of them.
        index === 0
          ? 'darkroom; fwd=stale; fwd-status=304; detail=store'
          : 'darkroom; hit; detail=store',
      );
      expect((await get(app, target)).cacheStatus).toBe('darkroom; hit');
    }
    expect(app.renderer.renders).toBe(0);
    expect(origin.reads.get(key)).toBe(1 + 1 + 1); // by the first: the state, the whole; now the state
  });

  it('makes anew what has another original by now', async () => {
    const [first] = await fill(url);
    origin.put(key, samples.png);
    const app = await start();
    const again = await get(app);
    expect(again.cacheStatus).toBe('darkroom; fwd=miss; stored');
    expect(again.headers.etag).not.toBe(first?.headers.etag);
    expect(app.renderer.renders).toBe(1);
    await expect.poll(() => store.paths.length).toBe(2);
  });

  it('knows nothing of what is gone', async () => {
    await fill(url);
    origin.delete(key);
    expect((await get(await start())).status).toBe(404);
  });

  it('looks once for all who ask at the same time', async () => {
    await fill(url);
    const app = await start();
    store.reads = 0;
    const responses = await Promise.all(Array.from({ length: 50 }, () => get(app)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(store.reads).toBe(1);
    expect(app.renderer.renders).toBe(0);
  });

  it('does not read a body for a conditional request', async () => {
    const [first] = await fill(url);
    const app = await start();
    store.reads = 0;
    const headers = { 'if-none-match': String(first?.headers.etag) };
    expect((await app.get(url, headers)).statusCode).toBe(304);
    expect(store.reads).toBe(0);
  });
});

describe('what is passed through', () => {
  it('is not stored: the original is there already', async () => {
    const app = await start();
    origin.put('emojis/1', samples.png);
    const { body } = await get(app, '/emojis/1.png?size=4096&quality=lossless');
    await get(app);
    await expect.poll(() => store.paths.length).toBe(1);
    expect(body.equals(samples.png)).toBe(true);
    expect(store.paths[0]).toMatch(/^icons\/1\/ab\//);
  });
});

describe('a store that fails', () => {
  it('costs a render, and is no error to any client', async () => {
    const app = await start();
    store.failure = new Error('the bucket is gone');
    const sizes = [16, 20, 22, 24, 28];
    for (const size of sizes) {
      expect((await get(app, `/icons/1/ab.webp?size=${size}`)).status).toBe(200);
    }
    expect(app.renderer.renders).toBe(sizes.length);
    // Not asked again at once, and logged once: the read, and the write.
    expect(store.reads).toBe(1);
    const warnings = app.log.entries.filter(({ level }) => level === 'warn');
    expect(warnings).toHaveLength(2);
    expect(app.log.errors).toEqual([]);
    store.failure = undefined;
    app.clock.advance(5_000);
    await get(app, '/icons/1/ab.webp?size=32');
    expect(store.reads).toBe(2);
    await expect.poll(() => store.paths.length).toBe(1);
  });

  it('that never responds is left after two seconds', async () => {
    const app = await start();
    store.read = () => new Promise(() => undefined);
    const response = await get(app);
    expect(response.status).toBe(200);
    expect(response.cacheStatus).toBe('darkroom; fwd=miss; stored');
  });
});

describe('while the origin fails', () => {
  it('what was stored is served where its state is known', async () => {
    await fill(url);
    const app = await start({ CACHE_MEMORY_BYTES: '0' });
    expect((await get(app)).status).toBe(200);
    app.clock.advance(300_000);
    origin.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    const response = await get(app);
    expect(response.status).toBe(200);
    expect(response.cacheStatus).toBe('darkroom; fwd=stale; detail=stale-if-error');
    expect(app.renderer.renders).toBe(0);
  });

  it('a process that has never seen the original cannot know its state', async () => {
    await fill(url);
    origin.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    expect((await get(await start())).status).toBe(502);
  });
});

describe('a stop', () => {
  it('does not wait for a store that hangs', async () => {
    const app = await start();
    store.write = () => new Promise(() => undefined);
    await get(app);
    await app.close();
    const logged = app.log.entries.find(({ details }) => 'unwritten' in details);
    expect(logged).toMatchObject({ level: 'warn', details: { unwritten: 1 } });
  });

  it('waits for what is being stored', async () => {
    const app = await start();
    const held = defer<void>();
    const write = store.write.bind(store);
    store.write = async (...args) => {
      await held.promise;
      await write(...args);
    };
    await get(app);
    const closed = app.close();
    held.resolve();
    await closed;
    expect(store.paths).toHaveLength(1);
    expect(store.isClosed).toBe(true);
  });
});
