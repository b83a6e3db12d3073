import { beforeEach, describe, expect, it } from 'vitest';
import type { Environment } from '../../../src/config/setting.ts';
import { defer } from '../../support/deferred.ts';
import {
  type ClientResponse,
  createClient,
  type SendRequest,
} from '../../support/http/http-client.ts';
import { findErrorDeviations } from '../../support/openapi/openapi-reader.ts';
import { PausedRenderer } from '../../support/paused-renderer.ts';
import { metricsSettings, type Scrape, scrape } from '../../support/telemetry/prometheus-text.ts';
import { readSample, samples, type TestApp, useTestApp } from '../../support/test-app.ts';

/** 16 frames of 320 × 320, scaled one by one: heavy. */
const animation = readSample('attachments/1/6/moon.gif');
const icon = (size: number, id = 1): string => `/icons/${id}/ab.webp?size=${size}`;

const WALL_MS = 1_763_769_600_000;

let app: TestApp;
let renderer: PausedRenderer;
/** Duration of each render on the clock of the app. */
let tookMs: number;
let client: SendRequest;

const request = (target: string, from: string, headers?: Record<string, string>) =>
  client(target, { headers: { 'X-Forwarded-For': from, ...headers } });

/** Three units in twelve seconds: one every four seconds. */
async function start(settings: Environment = {}) {
  tookMs = 0;
  renderer = new PausedRenderer(undefined, () => app.clock.advance(tookMs));
  app = await useTestApp({
    renderer,
    logged: 'info',
    wallClock: () => WALL_MS,
    settings: {
      RATE_LIMIT_REQUESTS: '3',
      RATE_LIMIT_WINDOW_SECONDS: '12',
      TRUST_PROXY: '127.0.0.1',
      ...settings,
    },
  });
  for (let id = 0; id < 14; id += 1) app.originals.put(`icons/${id}/ab`, samples.jpeg);
  client = createClient(await app.listen(), { pipelining: 0 });
}

async function exhaust(client: string, id = 1): Promise<void> {
  for (const size of [16, 20, 22]) expect((await request(icon(size, id), client)).status).toBe(200);
}

const statuses = async (responses: readonly Promise<ClientResponse>[]) =>
  (await Promise.all(responses)).map(({ status }) => status);
const readMetric = async (...args: Parameters<Scrape['read']>) => (await scrape(app)).read(...args);

describe('a client that has used up its rate limit', () => {
  beforeEach(() => start(metricsSettings));

  it('gets a 429 with all documented headers until a unit is available', async () => {
    await exhaust('192.0.2.1');
    app.clock.advance(500);
    const refused = await request(icon(24), '192.0.2.1');
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body.toString())).toEqual({
      code: 'RATE_LIMITED',
      message: 'Too many requests.',
      retry_after: 3.5,
    });
    expect(refused.headers).toMatchObject({
      'retry-after': ['4'],
      'x-ratelimit-limit': ['3'],
      'x-ratelimit-remaining': ['0'],
      'x-ratelimit-reset': [String(WALL_MS / 1000 + 12)],
      'cache-control': ['no-store'],
      'cache-status': ['darkroom; fwd=miss'],
    });
    expect(findErrorDeviations('GET', refused)).toEqual([]);
    const line = { status: 429, code: 'RATE_LIMITED', client: '192.0.2.1', cache: 'miss' };
    await expect.poll(() => app.requests.at(-1)).toMatchObject(line);

    app.clock.advance(3_499);
    expect((await request(icon(24), '192.0.2.1')).status).toBe(429);
    expect(await readMetric('darkroom_rate_clients')).toBe(1);
    app.clock.advance(1);
    const served = await request(icon(24), '192.0.2.1');
    expect(served.status).toBe(200);
    expect(Object.keys(served.headers).join()).not.toContain('x-ratelimit');
    expect(app.renderer.renders).toBe(4);
    const message = 'a client has exceeded its rate limit';
    const details = { client: '192.0.2.1', requests: 3, windowMs: 12_000 };
    const logged = app.log.entries.filter(({ level }) => level !== 'info');
    expect(logged).toEqual([{ level: 'warn', details, message }]);
    app.clock.advance(12_000);
    for (const size of [32, 40, 44, 48, 56]) await request(icon(size), '192.0.2.1');
    expect(app.log.count(message)).toBe(2);
  });

  it('still gets what needs no render: hits, 304s, passthrough, rejections by header, errors', async () => {
    app.originals.put('emojis/1', samples.png);
    app.originals.put('emojis/2', Buffer.from('no image'));
    app.originals.put('attachments/1/2/romeo.txt', samples.text);
    await exhaust('192.0.2.1');
    const { header } = await request(icon(16), '192.0.2.1');
    const other = await request(icon(24), '192.0.2.9');
    for (const [target, status, headers] of [
      [icon(16), 200],
      [icon(24), 200],
      [icon(16), 304, { 'If-None-Match': header('etag') }],
      // Not in memory, so it needs the state of the original.
      [icon(24), 304, { 'If-None-Match': other.header('etag') }],
      ['/emojis/1.png?size=4096&quality=lossless', 200],
      ['/emojis/2.webp', 415],
      ['/emojis/3.webp', 404],
      ['/emojis/1.webp?size=17', 400],
      ['/attachments/1/2/romeo.txt', 200],
      ['/avatars/3.png', 200],
      ['/nothing', 404],
    ] as const) {
      expect((await request(target, '192.0.2.1', headers)).status, target).toBe(status);
    }
    expect(app.renderer.renders).toBe(4);
    expect((await request(icon(28), '192.0.2.1')).status).toBe(429);
  });

  it('may join a render that another client has begun, without a charge', async () => {
    await exhaust('192.0.2.1');
    renderer.held = 'both';
    const running = request(icon(24), '192.0.2.2');
    await expect.poll(() => app.renderer.renders).toBe(4);
    const joined = ['192.0.2.1', '192.0.2.3'].map((from) => request(icon(24), from));
    // Both arrive before the render ends.
    await expect.poll(() => readMetric('darkroom_requests_in_flight')).toBe(3);
    renderer.release();
    expect(await statuses([running, ...joined])).toEqual([200, 200, 200]);
    for (const { header } of await Promise.all(joined)) {
      expect(header('cache-status')).toBe('darkroom; fwd=miss; stored; collapsed');
    }
    expect(app.renderer.renders).toBe(4);
    // The client that joined can still use its complete limit.
    await exhaust('192.0.2.3', 3);
    expect((await request(icon(44), '192.0.2.3')).status).toBe(429);
  });

  it('is rejected alone: another waiting client gets the rendering and is charged', async () => {
    const respond = defer<void>();
    app.originals.alter = async (object, key) => {
      if (key === 'icons/4/ab') await respond.promise;
      return object;
    };
    await exhaust('192.0.2.1');
    const first = request(icon(24, 4), '192.0.2.1');
    await expect.poll(() => app.originals.reads.get('icons/4/ab')).toBe(1);
    const joined = [request(icon(24, 4), '192.0.2.2'), request(icon(24, 4), '192.0.2.3')];
    await expect.poll(() => readMetric('darkroom_requests_in_flight')).toBe(3);
    respond.resolve();
    const all = await Promise.all([first, ...joined]);
    expect(all.map(({ status }) => status)).toEqual([429, 200, 200]);
    expect(app.renderer.renders).toBe(4);
    expect(all.map(({ header }) => header('cache-status')).sort()).toEqual([
      'darkroom; fwd=miss',
      'darkroom; fwd=miss; stored', // began the render
      'darkroom; fwd=miss; stored; collapsed',
    ]);
    // The client that began it is charged.
    const left = [2, 3].flatMap((id) =>
      [28, 32, 40].map((size) => request(icon(size, id), `192.0.2.${id}`)),
    );
    expect((await statuses(left)).sort()).toEqual([200, 200, 200, 200, 200, 429]);
  });
});

describe('a render', () => {
  const moon = (size: number): string => `/emojis/1.gif?size=${size}`;
  /** Determines the remaining units of a client by using them. */
  async function countLeft(client: string, firstId = 1): Promise<number> {
    tookMs = 0;
    for (let id = firstId; ; id += 1) {
      app.originals.put(`icons/${id}/left`, samples.jpeg);
      const { status } = await request(`/icons/${id}/left.webp?size=16`, client);
      if (status === 429) return id - firstId;
    }
  }

  beforeEach(async () => {
    const limits = { RATE_LIMIT_REQUESTS: '20', RATE_LIMIT_WINDOW_SECONDS: '86400' };
    await start({ ...limits, ...metricsSettings });
    app.originals.put('emojis/1', animation);
  });

  it('is charged for the estimate while it runs', async () => {
    renderer.held = 'heavy';
    const running = request(moon(240), '192.0.2.1');
    await expect.poll(() => app.renderer.renders).toBe(1);
    const left = await countLeft('192.0.2.1');
    expect(left).toBeGreaterThan(5);
    expect(left).toBeLessThan(19);
    tookMs = 60;
    renderer.release();
    expect((await running).status).toBe(200);
    expect(await countLeft('192.0.2.1', 100)).toBe(20 - left - 2);
  });

  it('that is aborted is charged for its duration, and one that never started is free', async () => {
    renderer.held = 'heavy';
    const send = async (from: string, size: number) => {
      const socket = await app.connect();
      socket.write(`GET ${moon(size)} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${from}\r\n\r\n`);
      return socket;
    };
    const queued = () => readMetric('darkroom_queue_length', { lane: 'heavy' });
    const runs = await send('192.0.2.1', 240);
    await expect.poll(() => app.renderer.renders).toBe(1);
    const waits = await send('192.0.2.2', 256);
    await expect.poll(queued).toBe(1);
    app.clock.advance(120);
    waits.destroy();
    await expect.poll(queued).toBe(0);
    runs.destroy();
    await expect.poll(() => readMetric('darkroom_slots_held', { lane: 'heavy' })).toBe(0);
    expect(await countLeft('192.0.2.1')).toBe(17);
    expect(await countLeft('192.0.2.2', 100)).toBe(20);
  });
});

it('identifies a client by its IPv4 address or IPv6 /64', async () => {
  await start();
  for (const [id, [one, other, status]] of (
    [
      ['203.0.113.1', '203.0.113.2', 200],
      ['2001:db8:1:2::1', '2001:0DB8:1:2:ffff:ffff:ffff:ffff', 429],
      ['2001:db8:1:2::1', '2001:db8:1:3::1', 200],
      ['2001:db8::', '2001:db8:0:0:1::', 429],
      ['::ffff:203.0.113.1', '203.0.113.1', 429],
      ['::ffff:cb00:7101', '203.0.113.1', 429],
      ['::ffff:203.0.113.1', '::ffff:203.0.113.2', 200],
      // Some load balancers add the port.
      ['203.0.113.1:49152', '203.0.113.1:80', 429],
      ['203.0.113.1:49152', '203.0.113.2:49152', 200],
      ['203.0.113.1', '203.0.113.1:49152', 429],
      ['[2001:db8:1:2::1]:49152', '2001:db8:1:2::9', 429],
      ['[2001:db8:1:2::1]', '[2001:db8:1:3::1]:443', 200],
      ['203.0.113.1, 127.0.0.1:80', '203.0.113.1', 429],
      ['203.0.113.1, [::ffff:127.0.0.1]:80', '203.0.113.1', 429],
    ] as const
  ).entries()) {
    await exhaust(one, id);
    expect((await request(icon(24, id), other)).status, `${other} after ${one}`).toBe(status);
    app.clock.advance(12_000);
  }
});

it.each(['false', '10.0.0.0/8'])(
  'warns once a minute of an untrusted proxy (TRUST_PROXY=%s)',
  async (TRUST_PROXY) => {
    const message =
      'ignoring X-Forwarded-For from an untrusted peer; if it is your proxy, add it to TRUST_PROXY';
    await start({ TRUST_PROXY, RATE_LIMIT_REQUESTS: '100' });
    await request(icon(16), '203.0.113.1');
    await request(icon(20), '203.0.113.2');
    const warnings = app.log.entries.filter((entry) => entry.message === message);
    expect(warnings).toEqual([{ level: 'warn', details: { peer: '127.0.0.1' }, message }]);
    app.clock.advance(59_999);
    await request(icon(22), '203.0.113.1');
    expect(app.log.count(message)).toBe(1);
    app.clock.advance(1);
    await request(icon(24), '203.0.113.1');
    // Clients that send no address are not proxies.
    app.clock.advance(60_000);
    await client(icon(28));
    await request(icon(32), ' , ');
    expect(app.log.count(message)).toBe(2);
  },
);

it.each([
  ['a word', 'unknown', 'unknown'],
  ['an obfuscated name', '203.0.113.1, _hidden:80', '_hidden:80'],
  ['two ports', '203.0.113.1:80:80', '203.0.113.1:80:80'],
  ['a zone', 'fe80::1%eth0', 'fe80::1%eth0'],
  ['a long text', 'x'.repeat(500), 'x'.repeat(64)],
])(
  'warns once a minute of a trusted proxy that reports %s as the client',
  async (_, sent, entry) => {
    const message = 'X-Forwarded-For of a trusted proxy has no IP address of the client';
    await start({ RATE_LIMIT_REQUESTS: '100' });
    for (const size of [16, 20]) expect((await request(icon(size), sent)).status).toBe(200);
    await request(icon(22), '203.0.113.1:80');
    const warnings = app.log.entries.filter((warning) => warning.level === 'warn');
    const details = { peer: '127.0.0.1', entry };
    expect(warnings).toEqual([{ level: 'warn', details, message }]);
    expect(app.requests[0]?.client).toBe('127.0.0.1');
    app.clock.advance(60_000);
    await request(icon(24), sent);
    expect(app.log.count(message)).toBe(2);
  },
);
