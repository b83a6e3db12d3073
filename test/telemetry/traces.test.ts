import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { tlsSettings } from '../support/http/tls-files.ts';
import { type ObservedApp, useObservedApp } from './observed-app.ts';

const AVATAR = '/avatars/3.png';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';
const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;
const continued = { traceId: TRACE_ID, parentSpanId: PARENT_ID };

const start = (settings: Readonly<Record<string, string>> = {}) => useObservedApp({ settings });

const servers = ({ collector }: ObservedApp) => collector.spans.filter(({ kind }) => kind === 2);

async function nextSpan(app: ObservedApp) {
  await expect.poll(() => servers(app)).toHaveLength(1);
  const [span] = servers(app);
  app.collector.spans.length = 0;
  return span ?? expect.fail();
}

describe('the trace of the sender', () => {
  it('continues with any tracestate, and its id is logged', async () => {
    const app = await start();
    const garbage = `a=1,${'=,'.repeat(50)}${'x'.repeat(4_000)}`;
    for (const tracestate of ['vendor=1', garbage]) {
      for (const target of ['/icons/1/ab.png', '/icons/1/ab.png', '/emojis/1.png']) {
        await app.send('GET', target, { traceparent, tracestate });
        expect(await nextSpan(app)).toMatchObject(continued);
        expect(app.requests.at(-1)?.traceId).toBe(TRACE_ID);
      }
    }
  });

  it.each([
    ['is malformed', '00-xyz-1-01', {}],
    ['is not wanted', traceparent, { OTEL_PROPAGATORS: 'none' }],
    ['is only baggage', traceparent, { OTEL_PROPAGATORS: 'baggage' }],
  ])('does not continue if it %s', async (_, sent, settings) => {
    const app = await start(settings);
    await app.send('GET', AVATAR, { traceparent: sent });
    const { parentSpanId, traceId } = await nextSpan(app);
    expect(parentSpanId).toBe('');
    expect(traceId).not.toBe(TRACE_ID);
    expect(app.requests.at(-1)?.traceId).toBe(traceId);
  });

  it.each([
    ['always_off', '1', '01', []],
    ['parentbased_traceidratio', '0', '01', [TRACE_ID]],
    ['parentbased_traceidratio', '0', '00', []],
  ])(
    'is recorded or omitted by OTEL_TRACES_SAMPLER=%s with argument %s and the sent flags %s',
    async (...row) => {
      const [sampler, ratio, flags, expected] = row;
      const app = await start({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio });
      const sent = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-${flags}` };
      for (const headers of [{}, {}, sent]) await app.send('GET', '/emojis/1.png', headers);
      for (const { traceId } of app.requests) expect(traceId).toMatch(/^[\da-f]{32}$/);
      await app.close();
      expect(servers(app).map(({ traceId }) => traceId)).toEqual(expected);
    },
  );

  it('has the scheme of the connection', async () => {
    const app = await start(tlsSettings);
    await app.send('GET', AVATAR, { traceparent });
    const { attributes, ...span } = await nextSpan(app);
    expect(span).toMatchObject(continued);
    expect(attributes['url.scheme']).toBe('https');
  });
});

it('a response that fails before its first byte has one `send` span', async () => {
  const app = await start();
  app.originals.put('attachments/1/2/broken', Buffer.alloc(10_000));
  app.originals.alter = (object) => {
    const body = new Readable({
      read() {
        this.destroy(new MediaError('ORIGIN_ERROR', { cause: new Error('unplugged') }));
      },
    });
    return { ...object, body };
  };
  expect((await app.send('GET', '/attachments/1/2/broken')).status).toBe(502);
  await app.close();
  expect(app.collector.spans.filter(({ name }) => name === 'send')).toHaveLength(1);
});

describe('a collector', () => {
  const linesOn = (app: ObservedApp, words: RegExp) =>
    app.log.entries.filter(({ message, details }) => words.test(message + JSON.stringify(details)));

  /** Sends a request, and waits for its spans at the collector. */
  async function requestOnce(app: ObservedApp): Promise<void> {
    const { length } = app.collector.batches;
    app.clock.advance(31_000); // the 404 is remembered for 30 s
    expect((await app.send('GET', '/emojis/1.png')).status).toBe(404);
    await expect.poll(() => app.collector.batches.length).toBeGreaterThan(length);
  }

  it('receives the configured headers and name', async () => {
    const app = await start({
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a%20b',
      OTEL_SERVICE_NAME: 'media',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
    });
    await app.send('GET', AVATAR);
    expect((await nextSpan(app)).resource).toMatchObject({
      'service.name': 'media',
      'deployment.environment.name': 'test',
    });
    expect(app.collector.batches[0]?.headers).toMatchObject({ 'x-team': 'a b' });
  });

  it('that rejects spans is logged at intervals, with the reason', async () => {
    const app = await start();
    app.collector.mood = 'refuses';
    for (let time = 0; time < 3; time += 1) await requestOnce(app);
    app.collector.mood = 'takes';
    await requestOnce(app);
    await expect.poll(() => servers(app)).toHaveLength(1);
    expect(linesOn(app, /traces/)).toMatchObject([
      { level: 'warn', details: { reason: 'Bad Request (400)' } },
    ]);
  });

  it('with a full queue delays no response, and dropped spans are logged once', async () => {
    const app = await start({ OTEL_BSP_MAX_QUEUE_SIZE: '1' });
    for (let time = 0; time < 3; time += 1) await requestOnce(app);
    expect(linesOn(app, /Dropped/)).toMatchObject([
      { level: 'warn', details: { reason: expect.stringMatching(/^Dropped \d+ spans/) } },
    ]);
  });

  it('that hangs delays no response, and a stop only for its part of the grace period', async () => {
    const app = await start({ SHUTDOWN_GRACE_MS: '1000' });
    app.collector.mood = 'hangs';
    await requestOnce(app);
    const beganMs = performance.now();
    await app.close();
    expect(performance.now() - beganMs).toBeLessThan(3_000);
    expect(app.log.entries.at(-1)).toMatchObject({
      level: 'warn',
      details: { reason: 'The collector took longer than 500 ms.' },
    });
  });
});
