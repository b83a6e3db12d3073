import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { defer } from '../support/deferred.ts';
import { createClient } from '../support/http/http-client.ts';
import type { ReceivedSpan } from '../support/telemetry/otlp-receiver.ts';
import { scrape } from '../support/telemetry/prometheus-text.ts';
import { type RequestLine, samples } from '../support/test-app.ts';
import { type Event, events } from './event-table.ts';
import { type ObservedApp, readCounts, useObservedApp } from './observed-app.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'PUT'];
const STAGES = ['store', 'origin', 'queue', 'render'];
const routes: Readonly<Record<string, string>> = {
  'guild icon': '/icons/{guild_id}/{icon_hash}.{ext}',
  'custom emoji': '/emojis/{emoji_id}.{ext}',
  'default avatar': '/avatars/{index}.{ext}',
  attachment: '/attachments/{channel_id}/{attachment_id}/{filename}',
  'external media': '/external/{signature}/{target}',
  upload: '/v1/relay/{key}',
};
const shorten = (text = ''): string => text.replace(/(?<=^.{200}).+/, '…');

const SERVER = 2;
const INTERNAL = 1;
const ERROR = 2;

const serversOf = ({ collector }: ObservedApp) =>
  collector.spans.filter(({ kind }) => kind === SERVER);

/** Returns the counters once they are stable: responses are counted when they are closed. */
async function settledCounts(app: ObservedApp) {
  let latest = await readCounts(app);
  await expect
    .poll(async () => {
      const before = latest;
      latest = await readCounts(app);
      return JSON.stringify([...latest]) === JSON.stringify([...before]);
    })
    .toBe(true);
  return latest;
}

async function play(app: ObservedApp, event: Event, target: string) {
  const { method = 'GET', headers, body, leaves } = event;
  if (leaves === undefined) return app.send(method, target, headers, body);
  const client = await app.begin(target);
  const inFlight = async () => (await scrape(app)).read('darkroom_requests_in_flight');
  await expect.poll(inFlight).toBe(1);
  client.destroy();
  return undefined;
}

function describeSpan({ name, attributes }: ReceivedSpan): string {
  const pairs = Object.entries(attributes).map((pair) => pair.join('='));
  return [name, ...pairs].join(' ').replaceAll(' darkroom.', ' .');
}

/** Returns the parameters of an asset, by span attribute. */
function parametersOf(asset: string): Record<string, unknown> {
  if (asset.startsWith('/')) return {};
  const parameters = [...asset.matchAll(/[?&](\w+)=([^&]+)/g)].map(([, name, value = '']) => [
    `darkroom.${name}`,
    /^\d+$/.test(value) ? Number(value) : value === 'false' ? false : value,
  ]);
  return Object.fromEntries(parameters);
}

/** Returns the stages of an event, as in its log line. */
function stagesOf({ stages, spans = [], leaves }: Event): readonly string[] {
  const shown = stages?.split(' ') ?? spans.map((words) => words.split(' ', 1)[0] ?? '');
  const timed = shown.filter((name) => STAGES.includes(name));
  return [...new Set(timed), ...(leaves ? [] : ['send'])];
}

/** Returns the counters that a log line implies. */
function countsOf(line: RequestLine, stages: readonly string[]): Record<string, number> {
  const { resource, status, cache, bytes, code } = line;
  const isPlainHit = cache === 'memory' && code === undefined;
  const timed = isPlainHit ? [] : stages;
  return {
    [`requests_total{resource=${resource},status=${status},cache=${cache}}`]: 1,
    [`sent_bytes_total{resource=${resource}}`]: bytes,
    ...Object.fromEntries(timed.map((stage) => [`stage_seconds_count{stage=${stage}}`, 1])),
  };
}

test.each(Object.entries(events))('%s is counted, logged and traced', async (_, event) => {
  const app = await useObservedApp(event.options?.());
  await event.before?.(app);
  const before = await settledCounts(app);
  app.requests.length = 0;
  app.log.entries.length = 0;
  const target = typeof event.target === 'string' ? event.target : event.target(app);
  const response = await play(app, event, target);
  await expect.poll(() => app.requests).toHaveLength(1);
  const line = app.requests[0] ?? expect.fail();
  const server = () => serversOf(app).find(({ traceId }) => traceId === line.traceId);
  await expect.poll(server).toBeDefined();
  const { spanId, traceId, ...span } = server() ?? expect.fail();
  const stages = stagesOf(event);
  const bytes = response?.body.length ?? 0;

  expect(line).toEqual({
    id: line.id,
    method: event.method ?? 'GET',
    bytes,
    ...event.line,
    durationMs: 0, // the clock of the tests is stopped
    stagesMs: Object.fromEntries(stages.map((stage) => [stage, 0])),
    client: '127.0.0.1',
    traceId,
  });
  expect(app.log.entries).toMatchObject(event.logged ?? []);
  for (const { details } of app.log.entries) {
    if ('code' in details) expect(details).toMatchObject({ id: line.id });
  }
  if (response !== undefined) {
    const { 'server-timing': timing = '', 'x-request-id': id } = response.headers;
    expect(id).toBe(line.id);
    // Only the log has the cause of a failure.
    expect(response.body.toString('latin1')).not.toMatch(/no route|a bug/);
    const shown = stages.filter((stage) => stage !== 'send' && event.isConcealed !== true);
    expect(timing).toBe(shown.map((stage) => `${stage};dur=0`).join(', '));
  }

  const after = await settledCounts(app);
  const changes = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)]);
  const expected = { ...countsOf(line, stages), ...event.counted };
  const notZero = (counts: [string, number][]) => counts.filter(([, value]) => value !== 0).sort();
  expect(notZero(changes as [string, number][])).toEqual(notZero(Object.entries(expected)));

  const { code, status, resource, cache } = line;
  const route = routes[resource];
  const isKnown = METHODS.includes(line.method);
  const name = [isKnown ? line.method : 'HTTP', route].filter(Boolean).join(' ');
  const hasFailed = code !== undefined && status >= 500;
  const [host, port] = (event.headers?.Host ?? (response ? 'cdn.example' : 'a')).split(':');
  expect(span).toMatchObject({
    name,
    kind: SERVER,
    parentSpanId: '',
    status: hasFailed ? ERROR : 0,
    links: [],
    resource: { 'service.name': 'darkroom', 'service.version': version },
  });
  expect(span.attributes).toEqual({
    'http.request.method': isKnown ? line.method : '_OTHER',
    ...(!isKnown && { 'http.request.method_original': line.method }),
    'url.scheme': 'http',
    'url.path': shorten(target.replace(/\?.*/, '').replace(/(?<=^.external.)[^/]+/, '[redacted]')),
    'network.protocol.version': '1.1',
    'server.address': shorten(host),
    ...(port && { 'server.port': Number(port) }),
    ...(route && { 'http.route': route }),
    ...(response ? { 'http.response.status_code': status } : { 'darkroom.client_gone': true }),
    ...(response && { 'darkroom.request.id': line.id }),
    'darkroom.resource': resource,
    'darkroom.cache': cache,
    'darkroom.bytes': line.bytes,
    ...parametersOf(line.asset),
    ...(code && { 'darkroom.error.code': code }),
    ...(hasFailed && { 'error.type': code }),
  });
  const parts = () => app.collector.spans.filter(({ parentSpanId }) => parentSpanId === spanId);
  const hasSending = stages.includes('send') && cache !== 'memory';
  const spans = [...(event.spans ?? []), ...(hasSending ? [`send .bytes=${line.bytes}`] : [])];
  const wanted = spans.map((words) => words.replace('<body>', String(bytes)));
  // The store is written after the response.
  await expect.poll(() => parts().map(describeSpan).sort()).toEqual(wanted.sort());
  for (const { attributes, ...part } of parts()) {
    const status = attributes['error.type'] === undefined ? 0 : ERROR;
    expect(part, part.name).toMatchObject({ traceId, kind: INTERNAL, status, links: [] });
  }
});

test('requests that share a render count one render, and link to the request that runs it', async () => {
  const mayRender = defer<Uint8Array>();
  const app = await useObservedApp({ renderer: { render: () => mayRender.promise } });
  const before = await settledCounts(app);
  const icon = '/icons/1/ab.webp?size=16';
  const leader = app.send('GET', icon);
  await expect.poll(() => app.renderer.renders).toBe(1);
  const follower = app.send('GET', icon);
  await expect.poll(async () => (await scrape(app)).read('darkroom_requests_in_flight')).toBe(2);
  await settledCounts(app);
  mayRender.resolve(samples.webp);
  await Promise.all([leader, follower]);
  await expect.poll(() => serversOf(app)).toHaveLength(2);
  const [led, joined] = ['miss', 'collapsed'].map(
    (use) =>
      serversOf(app).find(({ attributes }) => attributes['darkroom.cache'] === use) ??
      expect.fail(use),
  ) as [ReceivedSpan, ReceivedSpan];
  const parts = app.collector.spans.filter(({ parentSpanId }) => parentSpanId === joined.spanId);
  expect(parts.map(({ name }) => name)).toEqual(['store', 'join', 'send']);
  expect(parts[1]?.links).toEqual([{ traceId: led.traceId, spanId: led.spanId }]);
  expect(joined.traceId).not.toBe(led.traceId);
  expect(app.requests.map(({ cache }) => cache).sort()).toEqual(['collapsed', 'miss']);
  const after = await settledCounts(app);
  for (const name of [
    'requests_total{resource=guild icon,status=200,cache=collapsed}',
    'stage_seconds_count{stage=render}',
    'queue_wait_seconds_count{lane=light}',
  ]) {
    expect((after.get(name) ?? 0) - (before.get(name) ?? 0), name).toBe(1);
  }
});

test.each([
  ['GET /\x01 HTTP/1.1\r\n\r\n', 400],
  [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
])('counts invalid messages (%#)', async (bytes, status) => {
  const app = await useObservedApp();
  (await app.connect()).write(bytes, 'latin1');
  const name = `requests_total{resource=none,status=${status},cache=none}`;
  await expect.poll(async () => (await readCounts(app)).get(name)).toBe(1);
});

test('logs bytes and stages of a hit on a kept connection', async () => {
  const app = await useObservedApp();
  const request = createClient(await app.listen());
  const [, { body }] = [await request('/icons/1/ab.png'), await request('/icons/1/ab.png')];
  const line = { cache: 'memory', bytes: body.length, stagesMs: { store: 0, send: 0 } };
  await expect.poll(() => app.requests.at(-1)).toMatchObject(line);
});

test('logs no plain hits at "info"', async () => {
  const app = await useObservedApp({ logged: 'info' });
  for (const target of ['/icons/1/ab.png', '/icons/1/ab.png', '/avatars/0.png', '/emojis/1.png']) {
    await app.send('GET', target);
  }
  await expect.poll(() => app.requests.map(({ status }) => status)).toEqual([200, 404]);
});
