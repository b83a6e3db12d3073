import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { cdnSettings, useCdnApp, useCdnReplicas } from '../../support/cdn/cdn-app.ts';
import { AWS_KEYS, CDN_TOKEN, type Fault, startCdnApi } from '../../support/cdn/cdn-server.ts';
import { defer } from '../../support/deferred.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { scrape, sendToAdmin, withToken } from '../../support/telemetry/prometheus-text.ts';
import { createTestApp, FakeClock, samples, type TestApp } from '../../support/test-app.ts';
import { atScale } from '../../support/test-scale.ts';

/** Interval between the rounds: TRANSFORM_TIMEOUT_MS and 30 s. */
const SECOND_ROUND_MS = 45_000;

const HOUR_MS = 3_600_000;

const TAKEN_OVER = 'took over purges whose lease had expired';

async function purge(app: TestApp, payload: object): Promise<string> {
  const response = await sendToAdmin(app, '/purge', payload);
  expect([response.statusCode, Object.keys(response.json())]).toEqual([202, ['id']]);
  return response.json().id;
}

async function request(app: TestApp, path: string) {
  const response = await app.requestAdmin(path, { headers: withToken });
  return { code: response.statusCode, body: response.json() };
}

/** Tags of a response: of its original, then of the directories of the key, outermost first. */
async function tagsOf(app: TestApp, url: string): Promise<string[]> {
  const { headers } = await app.get(url);
  const text = headers['cache-tag'] ?? headers['surrogate-key'] ?? headers['cdn-tag'];
  return String(text).split(/[, ]/);
}

/** Purges of this many originals, with at most 1 000 keys each. */
function largePurges(count: number) {
  const keys = Array.from({ length: count }, (_, index) => `emojis/${index}`);
  return Array.from({ length: Math.ceil(count / 1_000) }, (_, index) => ({
    assets: keys.slice(1_000 * index, 1_000 * (index + 1)),
  }));
}

const purgesIn = ({ names }: MemoryObjects) => names.filter((name) => name.startsWith('purge-'));

describe.each(['cloudflare', 'fastly', 'bunny', 'cloudfront'] as const)('purges at %s', (name) => {
  test('are sent to the CDN at once, and again after the longest render plus any Retry-After', async () => {
    const { cdn, app, pass, clock } = await useCdnApp(name);
    const [tag] = await tagsOf(app, '/icons/1/ab.webp?size=16');
    const id = await purge(app, { assets: ['icons/1/ab'] });
    await pass(() => cdn.purges.length === 1);
    expect(cdn.purges).toEqual([{ atMs: 0, tags: [tag] }]);
    expect(await request(app, `/purges/${id}`)).toEqual({
      code: 200,
      body: { id, status: 'pending' },
    });
    await pass(() => clock.nowMs() >= SECOND_ROUND_MS - 5_000);
    expect(cdn.purges.length).toBe(1);
    const waiting = await scrape(app);
    expect(waiting.read('darkroom_edge_purges_pending')).toBe(1);
    expect(waiting.read('darkroom_edge_oldest_purge_seconds')).toBeGreaterThan(30);
    cdn.faults.push('limited with time');
    await pass(() => cdn.purges.length === 2);
    expect(cdn.purges[1]).toEqual({ atMs: SECOND_ROUND_MS + 7_000, tags: [tag] });
    expect(await request(app, `/purges/${id}`)).toEqual({
      code: 200,
      body: { id, status: 'done' },
    });
    expect((await request(app, '/purges')).body).toEqual({ count: 0, purges: [] });
    const { read } = await scrape(app);
    expect(read('darkroom_edge_purges_pending')).toBe(0);
    expect(read('darkroom_edge_oldest_purge_seconds')).toBe(0);
    expect(read('darkroom_edge_purges_total', { outcome: 'done' })).toBe(1);
  });

  test('are retried after any error until the CDN accepts them', async () => {
    const { cdn, app, pass } = await useCdnApp(name);
    const responses = ['limited', 'failed', 'refused', 'denied', 'limited with time'] as const;
    const faults: Fault[] = [...responses, 'reset'];
    cdn.faults.push(...faults, ...faults);
    const id = await purge(app, { prefix: 'icons/' });
    const reasons = new Set<string>();
    await pass(async () => {
      reasons.add(String((await request(app, `/purges/${id}`)).body.reason));
      return cdn.purges.length === 2;
    });
    expect((await request(app, `/purges/${id}`)).body).toEqual({ id, status: 'done' });
    expect(cdn.statuses.length).toBe(2 * faults.length + 2);
    const { read } = await scrape(app);
    const calls = (outcome: string) => read('darkroom_edge_calls_total', { outcome });
    expect(['taken', 'limited', 'failed', 'timeout'].map(calls)).toEqual([2, 4, 8, 0]);
    expect(reasons.size).toBeGreaterThan(4);
    expect([...reasons].join()).not.toContain(CDN_TOKEN);
    const logged = JSON.stringify(app.log.entries);
    for (const secret of [CDN_TOKEN, AWS_KEYS.accessKeyId, AWS_KEYS.secretAccessKey])
      expect(logged).not.toContain(secret);
  });
});

test('a purge fails after a day without acceptance, and reports the reason', async () => {
  const { cdn, app, pass, passFor, clock } = await useCdnApp('cloudflare');
  cdn.faults.push(...new Array<Fault>(100).fill('denied'));
  const id = await purge(app, { prefix: 'icons/' });
  await passFor(60_000);
  clock.advance(23.75 * HOUR_MS);
  await pass(() => cdn.statuses.length > 3);
  const calls = cdn.statuses.length;
  await pass(() => app.log.errors.length > 0);
  expect(clock.nowMs()).toBeGreaterThan(24 * HOUR_MS - 1);
  expect(clock.nowMs()).toBeLessThan(24 * HOUR_MS + 120_000);
  const { body } = await request(app, `/purges/${id}`);
  expect(body).toEqual({ id, status: 'failed', reason: expect.stringMatching(/^HTTP 40[13]/) });
  expect(app.log.errors).toMatchObject([{ edge: 'cloudflare', id, reason: body.reason }]);
  // Retries end up 30 to 60 s apart, at random.
  expect(cdn.statuses.length - calls).toBeLessThan(15 * 2.1);
});

describe('10 000 purged keys', () => {
  // The limits in docs/operate.md, which follow from the documented limits of the CDNs.
  test.each([
    ['fastly', 10_000, 2, 80, [200]],
    // CloudFront does not report how many calls an invalidation takes.
    ['cloudfront', 10_000, 6, 20, [201, 400]],
    // Short runs send a fraction of the keys, and get that fraction of the time plus the interval of the rounds.
    ['cloudflare', atScale(2_000, 10_000), atScale(6, 40), atScale(40, 200), [200]],
    ['bunny', atScale(100, 10_000), atScale(1.5, 75), atScale(200, 20_000), [204]],
  ] as const)(
    'at %s (%i) take at most %s minutes, in few calls',
    async (name, count, minutes, calls, codes) => {
      const { cdn, app, pass, clock } = await useCdnApp(name);
      for (const payload of largePurges(count)) await purge(app, payload);
      await pass(async () => (await request(app, '/purges')).body.count === 0);
      expect([...cdn.counts().values()]).toEqual(new Array(count).fill(2));
      expect(clock.nowMs()).toBeLessThan(minutes * 60_000);
      expect(cdn.purges.length).toBeLessThanOrEqual(calls + 4);
      expect([...new Set(cdn.statuses)]).toEqual(codes);
    },
    180_000,
  );

  test('do not delay a single purge', async () => {
    const { cdn, app, pass, clock } = await useCdnApp('cloudflare');
    const [tag = ''] = await tagsOf(app, '/icons/1/ab.webp?size=16');
    for (const payload of largePurges(3_000)) await purge(app, payload);
    await pass(() => cdn.purges.length === 28);
    const requestedMs = clock.nowMs();
    await purge(app, { assets: ['icons/1/ab'] });
    await pass(() => cdn.counts().get(tag) === 2);
    const times = cdn.purges.filter(({ tags }) => tags.includes(tag)).map(({ atMs }) => atMs);
    const [first = 0, second = 0] = times;
    // The CDN's token bucket gains a token every 12 seconds.
    expect(first - requestedMs).toBeLessThanOrEqual(12_000);
    expect(second - first).toBeLessThanOrEqual(SECOND_ROUND_MS + 12_000);
    expect((await request(app, '/purges')).body.count).toBe(3);
  });

  test('are sent for the first time before other large purges are sent again', async () => {
    const { cdn, app, pass, passFor } = await useCdnApp('cloudflare');
    const [early = {}, ...late] = largePurges(4_000);
    await purge(app, early);
    await passFor(SECOND_ROUND_MS - 10_000);
    for (const payload of late) await purge(app, payload);
    await pass(() => cdn.purges.length === 40);
    expect([...cdn.counts().values()]).toEqual(new Array(4_000).fill(1));
  });

  test.each([
    ['cloudflare', 0],
    ['fastly', 0],
    ['bunny', 200],
    ['cloudfront', 1_000],
  ] as const)('at %s delay a later block by at most %i ms', async (name, withinMs) => {
    const { cdn, app, pass, clock } = await useCdnApp(name);
    const [tag = ''] = await tagsOf(app, '/icons/1/ab.webp?size=16');
    for (const payload of largePurges(1_000)) await purge(app, payload);
    await pass(() => cdn.purges.length > 0 && clock.nowMs() > 0, 5_000);
    const requestedMs = clock.nowMs();
    await sendToAdmin(app, '/blocks', { keys: ['icons/1/ab'] });
    await pass(() => cdn.counts().has(tag));
    expect(clock.nowMs() - requestedMs).toBeLessThanOrEqual(withinMs);
    expect(new Set(cdn.statuses)).toHaveLength(1);
  });

  test('are rejected beyond the maximum, until some have been sent', async () => {
    const { app, cdn, objects } = await useCdnApp('bunny');
    cdn.faults.push(...new Array<Fault>(1_000).fill('failed'));
    // As many concurrent requests as are accepted.
    objects.writeMs = 100;
    for (const count of [50_000, 50_000]) {
      await Promise.all(largePurges(count).map((each) => purge(app, each)));
    }
    const refused = await sendToAdmin(app, '/purge', { prefix: 'icons/' });
    expect([refused.statusCode, refused.json().code]).toEqual([503, 'OVERLOADED']);
    expect(refused.headers['retry-after']).toBe('60');
  });
});

describe('the tags of a purge', () => {
  test.each([
    [{ assets: ['avatars/1/a_ab'] }, '/avatars/1/ab.webp', 0],
    [{ paths: ['/avatars/1/ab.webp?size=80'] }, '/avatars/1/ab.png', 0],
    [{ prefix: 'avatars/1/' }, '/avatars/1/ab.webp', 2],
    [{ prefix: 'guilds/1/users/2/avatars/' }, '/guilds/1/users/2/avatars/ab.webp', 5],
  ])('for %j include the tag of %s', async (payload, url, index) => {
    const { cdn, app, pass } = await useCdnApp('fastly');
    const tags = await tagsOf(app, url);
    await purge(app, payload);
    await pass(() => cdn.purges.length === 1);
    expect(cdn.purges[0]?.tags).toContain(tags[index]);
  });

  test('are sent once for several purges', async () => {
    const { cdn, app, pass } = await useCdnApp('bunny');
    // The first call is running and fails, while the others arrive.
    cdn.faults.push('limited with time');
    const ids = [];
    for (let time = 0; time < 5; time += 1) ids.push(await purge(app, { prefix: 'icons/' }));
    await pass(() => cdn.purges.length === 2);
    await pass(async () => (await request(app, '/purges')).body.count === 0);
    for (const id of ids) expect((await request(app, `/purges/${id}`)).body.status).toBe('done');
    expect(cdn.purges.length).toBe(2);
  });
});

describe('a purge', () => {
  test('removes results from memory, then concurrently at the CDN and in the store, then responds', async () => {
    const store = new MemoryResultStore();
    const { cdn, objects, app, pass } = await useCdnApp('fastly', { resultStore: store });
    app.originals.put('icons/1/ab', samples.jpeg);
    await app.get('/icons/1/ab.webp?size=16');
    // The rendering and the digest of its original.
    await expect.poll(() => store.paths.length).toBe(2);
    const remove = store.remove.bind(store);
    const removal = defer<void>();
    store.remove = async (prefix) => {
      await removal.promise;
      return remove(prefix);
    };
    const [tag = ''] = await tagsOf(app, '/icons/1/ab.webp?size=16');
    let hasResponded = false;
    const purging = purge(app, { assets: ['icons/1/ab'] }).finally(() => {
      hasResponded = true;
    });
    await pass(() => cdn.purges.length === 1);
    expect(cdn.purges[0]?.tags).toEqual([tag]);
    expect([hasResponded, store.paths.length]).toEqual([false, 2]);
    removal.resolve();
    const id = await purging;
    expect(store.paths).toEqual([]);
    expect(objects.textOf(`purge-${id}`)).toContain(tag);
  });

  test('returns 503 if it cannot be stored; only stored purges are sent to the CDN', async () => {
    const { cdn, objects, app, pass } = await useCdnApp('fastly');
    const id = await purge(app, { assets: ['icons/1/ab'] });
    objects.failure = new Error('the bucket is gone');
    const refused = await sendToAdmin(app, '/purge', { assets: ['icons/1/cd'] });
    expect([refused.statusCode, refused.json().code]).toEqual([503, 'JOURNAL_ERROR']);
    expect((await request(app, '/purges')).code).toBe(503);
    await pass(() => cdn.purges.length === 2);
    expect((await request(app, `/purges/${id}`)).body.status).toBe('done');
    expect([...cdn.counts().values()]).toEqual([2]);
  });
});

describe('pending purges', () => {
  test('of a stopping process are continued at once by another, even if the list also has a damaged purge', async () => {
    const { cdn, open, pass, clock, objects } = await useCdnReplicas('fastly');
    await objects.write('purge-0000', Buffer.from('{'), 'absent');
    await objects.write('purges-0000', Buffer.from('{'), 'absent');
    const one = await open();
    const id = await purge(one, { assets: ['icons/1/ab', 'icons/1/cd'] });
    await pass(() => cdn.purges.length === 1);
    await one.close();
    const other = await open();
    await pass(() => cdn.purges.length === 2);
    expect(clock.nowMs()).toBeLessThan(SECOND_ROUND_MS + 5_000);
    expect((await request(other, `/purges/${id}`)).body).toEqual({ id, status: 'done' });
  });

  test('of a process that stops during a hanging call are continued at once by another', async () => {
    const { cdn, open, pass } = await useCdnReplicas('fastly');
    const one = await open();
    cdn.faults.push('hang');
    const id = await purge(one, { prefix: 'icons/' });
    await expect.poll(() => cdn.statuses.length).toBe(1);
    const beganMs = performance.now();
    await one.close();
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    const other = await open();
    await pass(() => cdn.purges.length === 1);
    expect(cdn.purges[0]?.atMs).toBeLessThan(15_000);
    expect((await request(other, `/purges/${id}`)).body).toEqual({ id, status: 'pending' });
  });

  test('of a killed process are continued by one of the others', async () => {
    const { cdn, open, pass, clock, objects } = await useCdnReplicas('fastly');
    const [one, other, third] = [await open(), await open(), await open()];
    cdn.faults.push('failed');
    const ids = [await purge(one, { prefix: 'icons/' }), await purge(one, { prefix: 'emojis/' })];
    await pass(() => cdn.statuses.length === 1);
    await one.suspend();
    const killedAtMs = clock.nowMs();
    await pass(() => cdn.purges.length > 0);
    expect(clock.nowMs() - killedAtMs).toBeGreaterThanOrEqual(10_000);
    expect(clock.nowMs() - killedAtMs).toBeLessThan(30_000);
    await pass(async () => (await request(third, '/purges')).body.count === 0);
    for (const id of ids) expect((await request(other, `/purges/${id}`)).body.status).toBe('done');
    expect([...cdn.counts().values()]).toEqual([2, 2]);
    expect(purgesIn(objects).length).toBe(2);
  });

  test('of a slow process are not lost', async () => {
    const { cdn, open, pass, passFor, objects } = await useCdnReplicas('fastly');
    const [one, other] = [await open(), await open()];
    const first = await purge(one, { prefix: 'icons/' });
    await one.suspend();
    await passFor(60_000);
    expect(other.log.count(TAKEN_OVER)).toBe(1);
    one.resume();
    const second = await purge(one, { prefix: 'emojis/' });
    await pass(async () => (await request(other, '/purges')).body.count === 0);
    const ids = [first, second];
    for (const id of ids) expect((await request(other, `/purges/${id}`)).body.status).toBe('done');
    expect(Math.min(...cdn.counts().values())).toBeGreaterThanOrEqual(2);
    expect(purgesIn(objects).length).toBe(2);
  });

  test('between their rounds are continued when the second round is due', async () => {
    const { cdn, open, pass, clock } = await useCdnReplicas('fastly');
    const [one, other] = [await open(), await open()];
    const id = await purge(one, { prefix: 'icons/' });
    await pass(() => cdn.purges.length === 1);
    await one.suspend();
    await pass(() => cdn.purges.length === 2);
    expect(clock.nowMs()).toBeGreaterThanOrEqual(SECOND_ROUND_MS);
    expect(clock.nowMs()).toBeLessThanOrEqual(SECOND_ROUND_MS + 10_000);
    expect((await request(other, `/purges/${id}`)).body).toEqual({ id, status: 'done' });
  });

  test('are sent only by their process, in both rounds, with any number of replicas', async () => {
    const { cdn, open, pass, passFor } = await useCdnReplicas('fastly');
    const apps = [await open(), await open(), await open()];
    for (const app of apps) await purge(app, { assets: [`icons/${apps.indexOf(app)}/ab`] });
    cdn.faults.push(...new Array<Fault>(12).fill('failed'));
    await pass(() => cdn.purges.length === 6);
    await passFor(120_000);
    expect([...cdn.counts().values()]).toEqual([2, 2, 2]);
    expect(apps.map((app) => app.log.count(TAKEN_OVER))).toEqual([0, 0, 0]);
  });

  test('in a journal of an earlier release are continued, with round, reason and outcome', async () => {
    const directory = join(import.meta.dirname, '../blocks/earlier');
    // Shortly after the earlier release wrote the journal.
    const startedAtMs = 1_795_864_020_000 - 1_750_000_000_000;
    const { cdn, open, pass, clock, objects } = await useCdnReplicas('fastly');
    clock.advance(startedAtMs);
    for (const name of await readdir(directory)) {
      const bytes = await readFile(join(directory, name));
      await objects.write(name.replace(/^blocks\.jsonl\.?/, ''), bytes, 'absent');
    }
    const app = await open();
    const [done, second, first] = [
      'f7c647c2-b6db-448d-a0d4-bc379df1a62e',
      'cdb4a552-8d36-4474-9927-14edbf998933',
      'c671ba37-d32b-403b-a2f3-9504cdbb2d42',
    ];
    const [secondTag = ''] = await tagsOf(app, '/icons/1/second.webp');
    const firstTags = await Promise.all(
      ['a', 'b'].map(async (end) => (await tagsOf(app, `/icons/1/first-${end}.webp`))[0]),
    );
    cdn.faults.push('denied');
    await pass(() => cdn.statuses.length > 0);
    expect((await request(app, `/purges/${done}`)).body).toEqual({ id: done, status: 'done' });
    const reason = 'HTTP 401 Provided credentials are missing or invalid';
    const { body } = await request(app, `/purges/${first}`);
    expect(body).toEqual({ id: first, status: 'pending', reason });
    const { purges } = (await request(app, '/purges')).body;
    expect(purges.map(({ id }: { id: string }) => id)).toEqual([second, first]);
    await pass(() => cdn.counts().size === 3);
    // The tag key stays, and one of the purges has finished its first round.
    expect(cdn.purges.map(({ tags }) => tags).sort()).toEqual([[secondTag], firstTags].sort());
    await pass(async () => (await request(app, '/purges')).body.count === 0);
    expect(cdn.counts()).toEqual(
      new Map([[secondTag, 1], ...firstTags.map((tag) => [tag, 2])] as never),
    );
    for (const id of [second, first]) {
      expect((await request(app, `/purges/${id}`)).body).toEqual({ id, status: 'done' });
    }
    expect(objects.names.filter((name) => name.startsWith('purges-'))).toEqual([]);
    expect(purgesIn(objects).length).toBe(3);
  });

  test('are reported by every replica until a day after their end', async () => {
    const { cdn, open, pass, passFor, clock, objects } = await useCdnReplicas('fastly');
    const [one, other] = [await open(), await open()];
    cdn.faults.push('denied', 'denied', 'denied');
    const id = await purge(one, { prefix: 'icons/' });
    await pass(() => cdn.statuses.length === 3);
    await passFor(5_000);
    const reason = 'HTTP 401 Provided credentials are missing or invalid';
    const { body } = await request(other, '/purges');
    expect(body).toEqual({
      count: 1,
      purges: [{ id, status: 'pending', reason, pendingSeconds: expect.any(Number) }],
    });
    await pass(() => cdn.purges.length === 2);
    expect((await request(other, `/purges/${id}`)).body).toEqual({ id, status: 'done' });
    clock.advance(24 * HOUR_MS);
    await passFor(10_000);
    expect((await request(other, `/purges/${id}`)).code).toBe(404);
    expect(objects.names.filter((name) => name !== '')).toEqual(['tag-key']);
  });
});

describe('a block', () => {
  const settings = { BLOCKLIST_POLL_SECONDS: '1' };
  const block = (app: TestApp, payload: object) => sendToAdmin(app, '/blocks', payload);

  test('is sent to the CDN like a purge', async () => {
    const { cdn, app, pass } = await useCdnApp('fastly', { settings });
    const [tag, directory] = await tagsOf(app, '/icons/1/ab.webp?size=16');
    expect((await block(app, { keys: ['icons/1/ab'], prefixes: ['icons/'] })).statusCode).toBe(200);
    await pass(() => cdn.purges.length === 2);
    expect(cdn.purges.map(({ tags }) => tags)).toEqual(Array(2).fill([tag, directory]));
    const { statusCode, headers } = await app.get('/icons/1/ab.webp?size=16');
    expect([statusCode, headers['surrogate-key']]).toEqual([451, undefined]);
  });

  test('by SHA-256 is sent by each replica that knows an original with these bytes', async () => {
    const { cdn, open, pass } = await useCdnReplicas('fastly', { settings });
    const [one, other] = [await open(), await open()];
    other.originals.put('icons/1/ab', samples.jpeg);
    const [tag] = await tagsOf(other, '/icons/1/ab.webp?size=16');
    await other.requestAdmin('/metadata/icons/1/ab?sha256=true', { headers: withToken });
    const sha256 = [hash('sha256', samples.jpeg)];
    expect((await block(one, { sha256 })).statusCode).toBe(200);
    await expect.poll(() => cdn.purges.length).toBe(1);
    await pass(() => cdn.purges.length === 2);
    expect(cdn.purges.map(({ tags }) => tags)).toEqual([[tag], [tag]]);
  });

  test('by SHA-256 purges a large original that was sent before it was hashed', async () => {
    const { cdn, app } = await useCdnApp('fastly', {
      settings: { ...settings, MAX_ORIGINAL_BYTES: '100000' },
    });
    const bytes = Buffer.alloc(300_000, 'x');
    app.originals.put('attachments/1/2/a.bin', bytes);
    expect((await block(app, { sha256: [hash('sha256', bytes)] })).statusCode).toBe(200);
    const [tag] = await tagsOf(app, '/attachments/1/2/a.bin');
    await expect.poll(() => cdn.purges.map(({ tags }) => tags)).toEqual([[tag]]);
    expect((await app.get('/attachments/1/2/a.bin')).statusCode).toBe(451);
  });

  test('returns 503 if it cannot be stored for the CDN, but stays in effect', async () => {
    const { objects, app } = await useCdnApp('fastly', { settings });
    const write = objects.write.bind(objects);
    objects.write = async (name, ...rest) => {
      if (name.startsWith('purge-')) throw new Error('the bucket is full');
      return write(name, ...rest);
    };
    expect((await block(app, { keys: ['icons/1/ab'] })).statusCode).toBe(503);
    expect((await app.get('/icons/1/ab.webp?size=16')).statusCode).toBe(451);
  });
});

test('an error in a loop of the sender is logged, and purges are still sent', async () => {
  const clock = new FakeClock();
  const cdn = await startCdnApi('fastly', () => clock.nowMs());
  let failures = 2;
  const app = await createTestApp({
    settings: cdnSettings('fastly', cdn),
    objects: new MemoryObjects(),
    clock,
    wallClock: () => 1_750_000_000_000 + clock.nowMs(),
    sleep: async (...args) => {
      failures -= 1;
      if (failures >= 0) throw new Error('an internal error');
      return clock.sleep(...args);
    },
  });
  onTestFinished(app.close);
  await expect.poll(() => app.log.errors.length).toBe(2);
  expect(app.log.errors).toMatchObject(Array(2).fill({ err: { message: 'an internal error' } }));
  const id = await purge(app, { assets: ['icons/1/ab'] });
  await expect
    .poll(async () => {
      clock.advance(5_000);
      return (await request(app, `/purges/${id}`)).body.status;
    })
    .toBe('done');
});
