import { beforeEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { defer } from '../support/deferred.ts';
import { connectSecurely } from '../support/http/raw-http.ts';
import { tlsSettings } from '../support/http/tls-files.ts';
import { MemoryResultStore } from '../support/memory-result-store.ts';
import {
  type OtlpReceiver,
  type ReceivedSpan,
  useOtlpReceiver,
  useTracing,
} from '../support/telemetry/otlp-receiver.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../support/test-app.ts';

const icon = '/icons/1/ab.webp?size=16&v=7';
const route = '/icons/{guild_id}/{icon_hash}.{ext}';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';
const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;

let collector: OtlpReceiver;
let app: TestApp;

async function start({ settings, ...options }: TestAppOptions = {}) {
  app = await useTestApp({
    ...options,
    logged: 'debug',
    settings: useTracing(collector, settings),
  });
  app.originals.put('icons/1/ab', samples.jpeg);
  app.originals.put('emojis/7', samples.text);
  app.originals.put('attachments/1/2/a.txt', samples.text);
}

beforeEach(async () => {
  collector = await useOtlpReceiver();
  await start();
});

/** All spans of the only request since the last call, its own first, once that has come. */
async function oneTrace(): Promise<[ReceivedSpan, ...ReceivedSpan[]]> {
  await expect.poll(() => serverSpans()).toHaveLength(1);
  const [server] = serverSpans();
  if (server === undefined) return expect.fail('no server span');
  const stages = collector.spans.filter((span) => span !== server);
  collector.spans.length = 0;
  return [server, ...stages];
}

function serverSpans(): ReceivedSpan[] {
  return collector.spans.filter(({ kind }) => kind === 2);
}

function expectStages(
  server: ReceivedSpan,
  stages: readonly ReceivedSpan[],
  names: string[],
): void {
  expect(stages.map(({ name }) => name)).toEqual(names);
  for (const stage of stages) {
    expect(stage).toMatchObject({ traceId: server.traceId, parentSpanId: server.spanId, kind: 1 });
  }
}

describe('a trace of one request', () => {
  it('shows every stage of a cold render, under one span that has the names of HTTP', async () => {
    const resultStore = new MemoryResultStore();
    await start({ resultStore });
    const { body } = await app.send('GET', icon, { 'X-Request-Id': 'abc-1' });
    await expect.poll(() => collector.spans.some(({ name }) => name === 'write')).toBe(true);
    const [server, ...stages] = await oneTrace();
    expect(server).toMatchObject({ name: `GET ${route}`, parentSpanId: '', kind: 2, status: 0 });
    expect(server.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': route,
      'http.response.status_code': 200,
      'url.scheme': 'http',
      'url.path': '/icons/1/ab.webp',
      'server.address': 'cdn.example',
      'network.protocol.version': '1.1',
      'darkroom.request.id': 'abc-1',
      'darkroom.resource': 'guild icon',
      'darkroom.cache': 'miss',
      'darkroom.bytes': body.length,
      'darkroom.width': 16,
      'darkroom.format': 'webp',
      'darkroom.quality': 'high',
      'darkroom.animated': false,
    });
    expect(server.resource).toMatchObject({
      'service.name': 'darkroom',
      'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'telemetry.sdk.language': 'nodejs',
    });
    // The write comes after the response, whichever is exported first.
    const inTime = stages.filter(({ name }) => name !== 'write');
    expectStages(server, inTime, [
      'store',
      'origin',
      'store',
      'origin',
      'facts',
      'queue',
      'render',
      'send',
    ]);
    const attributesOf = (name: string) =>
      stages.filter((stage) => stage.name === name).map(({ attributes }) => attributes);
    expect(attributesOf('store')).toEqual([
      { 'darkroom.memory': 'results', 'darkroom.found': false },
      { 'darkroom.memory': 'store', 'darkroom.found': false },
    ]);
    expect(attributesOf('origin')).toEqual([
      { 'darkroom.origin.part': 'state' },
      { 'darkroom.origin.part': 'body', 'darkroom.bytes': samples.jpeg.length },
    ]);
    expect(attributesOf('facts')).toMatchObject([
      { 'darkroom.format': 'jpeg', 'darkroom.frames': 1, 'darkroom.bytes': samples.jpeg.length },
    ]);
    expect(attributesOf('queue')).toEqual([{ 'darkroom.lane': 'light' }]);
    expect(attributesOf('render')).toMatchObject([
      {
        'darkroom.lane': 'light',
        'darkroom.format': 'webp',
        'darkroom.width': 16,
        'darkroom.frames': 1,
        'darkroom.bytes': body.length,
      },
    ]);
    expect(attributesOf('send')).toEqual([{ 'darkroom.bytes': body.length }]);
    const write = stages.find(({ name }) => name === 'write');
    expect(write).toMatchObject({
      traceId: server.traceId,
      parentSpanId: server.spanId,
      attributes: { 'darkroom.bytes': body.length },
    });
  });

  it('is a span alone for a hit in memory', async () => {
    await app.send('GET', icon);
    await oneTrace();
    for (const method of ['GET', 'GET', 'HEAD']) {
      await app.send(method, icon);
      const [server, ...stages] = await oneTrace();
      expect(stages).toEqual([]);
      expect(server).toMatchObject({ name: `${method} ${route}`, parentSpanId: '', status: 0 });
      expect(server.attributes).toMatchObject({
        'http.response.status_code': 200,
        'http.route': route,
        'url.path': '/icons/1/ab.webp',
        'server.address': 'cdn.example',
        'darkroom.cache': 'memory',
        'darkroom.resource': 'guild icon',
      });
    }
  });

  it('shows an attachment passed on, and what of it was sent', async () => {
    await app.send('GET', '/attachments/1/2/a.txt', { Host: 'cdn.example:8443' });
    const [server, ...stages] = await oneTrace();
    expectStages(server, stages, ['origin', 'send']);
    expect(server.attributes).toMatchObject({
      'darkroom.cache': 'bypass',
      'server.address': 'cdn.example',
      'server.port': 8_443,
      'darkroom.bytes': samples.text.length,
    });
    expect(stages.map(({ attributes }) => attributes)).toEqual([
      { 'darkroom.origin.part': 'body', 'darkroom.bytes': samples.text.length },
      { 'darkroom.bytes': samples.text.length },
    ]);
  });

  it.each([
    ['missing', '/emojis/1.png', 404, 'UNKNOWN_MEDIA', ['store', 'origin', 'send'], 1],
    [
      'no image',
      '/emojis/7.png',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      ['store', 'origin', 'origin', 'facts', 'send'],
      3,
    ],
  ])(
    'takes what is %s for a response, and no failure',
    async (_, path, status, code, names, at) => {
      await app.send('GET', path);
      const [server, ...stages] = await oneTrace();
      expectStages(server, stages, names);
      expect(server.status).toBe(0);
      expect(server.attributes).toMatchObject({
        'http.response.status_code': status,
        'darkroom.error.code': code,
      });
      expect(server.attributes).not.toHaveProperty('error.type');
      expect(stages[at]).toMatchObject({ status: 0, attributes: { 'darkroom.error.code': code } });
    },
  );

  it('shows in which stage a request has failed', async () => {
    const failure = new MediaError('ORIGIN_ERROR', { cause: new Error('no route') });
    await start({ origin: { read: () => Promise.reject(failure) } });
    await app.send('GET', icon);
    const [server, ...stages] = await oneTrace();
    expectStages(server, stages, ['store', 'origin', 'send']);
    for (const span of [server, stages[1]]) {
      expect(span).toMatchObject({
        status: 2,
        attributes: { 'error.type': 'ORIGIN_ERROR', 'darkroom.error.code': 'ORIGIN_ERROR' },
      });
    }
    expect(stages[0]?.status).toBe(0);
    expect(server.attributes['http.response.status_code']).toBe(502);
  });

  it('says of a client that has gone no status, and of what it left no failure', async () => {
    await start({ origin: { read: () => new Promise(() => undefined) } });
    const client = await app.begin(icon);
    await new Promise((resolve) => setTimeout(resolve, 100));
    client.destroy();
    // It ends as soon as its abort is noticed: after the request, or before.
    await expect.poll(() => collector.spans.map(({ name }) => name)).toContain('origin');
    const [server, ...stages] = await oneTrace();
    expect(server.status).toBe(0);
    expect(server.attributes).toMatchObject({ 'darkroom.client_gone': true });
    expect(server.attributes).not.toHaveProperty('http.response.status_code');
    expectStages(server, stages, ['store', 'origin']);
    expect(stages[1]).toMatchObject({ status: 0, attributes: { 'darkroom.aborted': true } });
  });

  it.each([
    ['GET', '/robots.txt?token=hush', 'GET', 'GET', '/robots.txt', 404],
    ['POST', '/emojis/1.png', 'POST', 'POST', '/emojis/1.png', 405],
    ['PROPFIND', '/emojis/1.png', 'HTTP', '_OTHER', '/emojis/1.png', 405],
  ])('of %s %s has few names, and never a query', async (...row) => {
    const [method, target, name, shown, path, status] = row;
    await app.send(method, target);
    const [server] = await oneTrace();
    expect(server.name).toBe(name);
    expect(server.attributes).toMatchObject({
      'http.request.method': shown,
      'url.path': path,
      'http.response.status_code': status,
    });
    expect(server.attributes).not.toHaveProperty('http.route');
    expect(JSON.stringify(server)).not.toContain('hush');
  });

  it('names default avatars', async () => {
    await app.send('GET', '/avatars/3.png');
    const [server, ...stages] = await oneTrace();
    expect([server.name, stages]).toEqual(['GET /avatars/{index}.{ext}', []]);
  });

  it('is of the protocol and the name that it came by', async () => {
    await start({ settings: tlsSettings });
    const headers = { Host: 'media.example', traceparent };
    await app.send('GET', icon, headers, '', connectSecurely);
    const [server, ...stages] = await oneTrace();
    expectStages(server, stages, ['store', 'origin', 'origin', 'facts', 'queue', 'render', 'send']);
    expect(server).toMatchObject({ name: `GET ${route}`, parentSpanId: PARENT_ID });
    expect(server.attributes).toMatchObject({
      'url.scheme': 'https',
      'server.address': 'media.example',
      'network.protocol.version': '1.1',
    });
  });
});

describe('requests that share their work', () => {
  it('are linked to the one that does it', async () => {
    const isAsked = defer<void>();
    const mayRender = defer<Uint8Array>();
    const renderer = {
      render: () => {
        isAsked.resolve();
        return mayRender.promise;
      },
    };
    await start({ renderer });
    const leader = app.send('GET', icon);
    await isAsked.promise;
    const follower = app.send('GET', icon);
    await new Promise((resolve) => setTimeout(resolve, 100));
    mayRender.resolve(samples.webp);
    await Promise.all([leader, follower]);
    await expect.poll(serverSpans).toHaveLength(2);
    const [led, joined] = ['miss', 'collapsed'].map((cache) =>
      serverSpans().find(({ attributes }) => attributes['darkroom.cache'] === cache),
    );
    const stagesOf = (server: ReceivedSpan | undefined) =>
      collector.spans.filter(({ parentSpanId }) => parentSpanId === server?.spanId);
    expect(joined?.traceId).not.toBe(led?.traceId);
    expect(stagesOf(led).map(({ name }) => name)).toContain('render');
    expect(stagesOf(joined).map(({ name }) => name)).toEqual(['store', 'join', 'send']);
    expect(stagesOf(joined)[1]?.links).toEqual([{ traceId: led?.traceId, spanId: led?.spanId }]);
  });
});

describe("a trace of the sender's", () => {
  it('goes on here, and its id is in the log', async () => {
    for (const cache of ['miss', 'memory', 'memory']) {
      await app.send('GET', icon, { traceparent, tracestate: 'vendor=1' });
      const [server, ...stages] = await oneTrace();
      expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: PARENT_ID });
      for (const stage of stages) expect(stage.traceId).toBe(TRACE_ID);
      expect(app.requests.at(-1)).toMatchObject({ cache, traceId: TRACE_ID });
    }
  });

  it.each([
    ['is of no form', '00-xyz-1-01', {}],
    ['is not wanted', traceparent, { OTEL_PROPAGATORS: 'none' }],
    ['is only baggage', traceparent, { OTEL_PROPAGATORS: 'baggage' }],
  ])('does not where it %s', async (_, sent, settings) => {
    await start({ settings });
    await app.send('GET', icon, { traceparent: sent });
    const [server] = await oneTrace();
    expect(server).toMatchObject({ parentSpanId: '' });
    expect(server.traceId).not.toBe(TRACE_ID);
    expect(app.requests.at(-1)?.traceId).toBe(server.traceId);
  });

  it('goes on whatever else its sender writes of it', async () => {
    const tracestate = `a=1,${'=,'.repeat(50)}${'x'.repeat(4_000)}`;
    expect((await app.send('GET', icon, { traceparent, tracestate })).status).toBe(200);
    const [server] = await oneTrace();
    expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: PARENT_ID });
  });

  it('decides whether it is recorded here, too', async () => {
    await app.send('GET', icon, { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` });
    expect(app.requests.at(-1)).toMatchObject({ traceId: TRACE_ID });
    await app.send('GET', '/emojis/1.png');
    const [server] = await oneTrace();
    expect(server.name).toContain('/emojis/');
    expect(collector.spans.filter(({ traceId }) => traceId === TRACE_ID)).toEqual([]);
  });

  it.each([
    ['always_off', '1', []],
    ['traceidratio', '0', []],
    ['parentbased_always_off', '1', [TRACE_ID]],
    ['parentbased_traceidratio', '0', [TRACE_ID]],
  ])('is recorded as OTEL_TRACES_SAMPLER=%s with %s says', async (sampler, ratio, expected) => {
    await start({ settings: { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio } });
    for (const headers of [{}, {}, {}, { traceparent }]) await app.send('GET', icon, headers);
    for (const { traceId } of app.requests) expect(traceId).toMatch(/^[\da-f]{32}$/);
    await app.close();
    expect(serverSpans().map(({ traceId }) => traceId)).toEqual(expected);
  });
});

describe('without a collector that is named', () => {
  it.each([{}, { OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])(
    'or with %j, there are no traces',
    async (settings) => {
      const endpoint = Object.keys(settings).length === 0 ? '' : collector.url;
      await start({ settings: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...settings } });
      await app.send('GET', icon, { traceparent });
      await app.send('GET', icon, { traceparent });
      expect(app.requests).toHaveLength(2);
      for (const line of app.requests) expect(line).not.toHaveProperty('traceId');
      await app.close();
      expect(collector.batches).toEqual([]);
    },
  );
});

describe('a collector', () => {
  it('is sent headers, and compressed batches, to a path of its own', async () => {
    await start({
      settings: {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/here`,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-key=general,x-team=a%20b',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-key=hush-hush',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
        OTEL_SERVICE_NAME: 'media',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
      },
    });
    await app.send('GET', '/avatars/3.png');
    const [server] = await oneTrace();
    expect(server.resource).toMatchObject({
      'service.name': 'media',
      'deployment.environment.name': 'test',
    });
    expect(collector.batches[0]).toMatchObject({
      path: '/here',
      headers: { 'x-key': 'hush-hush', 'x-team': 'a b', 'content-encoding': 'gzip' },
    });
  });

  it('that fails costs no request anything, and is logged once, and once more when it is back', async () => {
    const warnings = () =>
      app.log.entries.filter(({ details }) => 'reason' in details || 'lostSpans' in details);
    collector.mood = 'refuses';
    for (let time = 0; time < 4; time += 1) {
      const batches = collector.batches.length;
      expect((await app.send('GET', icon)).status).toBe(200);
      await expect.poll(() => collector.batches.length).toBeGreaterThan(batches);
    }
    await expect.poll(warnings).toHaveLength(1);
    collector.mood = 'takes';
    await app.send('GET', icon);
    await expect.poll(warnings).toHaveLength(2);
    expect(warnings()).toMatchObject([
      { level: 'warn', details: { reason: 'Bad Request (400)' } },
      { level: 'info', details: { lostSpans: expect.any(Number) } },
    ]);
  });

  it('that gets more than may wait is not waited for, and what is dropped is logged once', async () => {
    await start({ settings: { OTEL_BSP_MAX_QUEUE_SIZE: '1' } });
    const drops = () =>
      app.log.entries.filter(({ details }) => /Dropped/.test(JSON.stringify(details)));
    for (let time = 0; time < 6; time += 1) {
      const before = collector.batches.length;
      // An original that is gone has four spans, and is remembered for half a minute.
      app.clock.advance(31_000);
      expect((await app.send('GET', '/emojis/1.png')).status).toBe(404);
      await expect.poll(() => collector.batches.length).toBeGreaterThan(before);
    }
    expect(drops()).toMatchObject([
      { level: 'warn', details: { reason: expect.stringMatching(/^Dropped \d+ spans/) } },
    ]);
  });

  it('that hangs keeps no response waiting, and no stop for longer than its part of the grace', async () => {
    await start({ settings: { SHUTDOWN_GRACE_MS: '1000' } });
    collector.mood = 'hangs';
    expect((await app.send('GET', icon)).status).toBe(200);
    await expect.poll(() => collector.batches.length).toBe(1);
    const beganMs = performance.now();
    await app.close();
    expect(performance.now() - beganMs).toBeLessThan(3_000);
    expect(app.log.entries.at(-1)).toMatchObject({
      level: 'warn',
      details: { reason: 'The collector took longer than 500 ms.' },
    });
  });
});
