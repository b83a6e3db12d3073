import { expect, it } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { useOtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

const AVATAR = '/avatars/1/ab12.webp?size=16';
const SPAN_NAME = 'GET /avatars/{user_id}/{avatar_hash}.{ext}';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const headers = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };
const NEVER = { OTEL_BSP_SCHEDULE_DELAY: '600000' };

/** A service, with a function that asks it for something that is there. */
async function start(environment: Readonly<Record<string, string>>) {
  const service = await useService(environment);
  const ask = async (): Promise<void> => {
    const response = await fetch(service.origin + AVATAR, { headers });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
  };
  return { ...service, ask };
}

it.each([
  [false, {}],
  [true, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
])('that OpenTelemetry is loaded is %s with %j', async (isLoaded, environment) => {
  const NODE_OPTIONS = '--import ./test/support/telemetry/module-watch.mjs';
  const service = await start({ NODE_OPTIONS, ...environment });
  for (let time = 0; time < 2; time += 1) await service.ask();
  expect(await service.stop()).toBe(0);
  expect(service.output()).toContain('imported fastify\n');
  expect(/^imported @opentelemetry\//m.test(service.output())).toBe(isLoaded);
});

it('a traced service sends what it has not sent yet when it is stopped', async () => {
  const collector = await useOtlpReceiver();
  const service = await start({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/here`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    ...NEVER,
  });
  for (let time = 0; time < 2; time += 1) await service.ask();
  expect(collector.batches).toEqual([]);
  expect(await service.stop()).toBe(0);
  expect(collector.batches.map(({ path }) => path)).toEqual(['/here']);
  const servers = collector.spans.filter(({ kind }) => kind === 2);
  expect(servers.map(({ name, traceId }) => [name, traceId])).toEqual([
    [SPAN_NAME, TRACE_ID],
    [SPAN_NAME, TRACE_ID],
  ]);
  const render = collector.spans.find(({ name }) => name === 'render');
  expect(render?.durationMs).toBeGreaterThan(0.1);
  expect(render?.durationMs).toBeLessThan(servers[0]?.durationMs ?? 0);
});

it('a traced service sends protobuf unless it is set otherwise', async () => {
  const { url, batches } = await useOtlpReceiver();
  const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...NEVER });
  await service.ask();
  expect(await service.stop()).toBe(0);
  expect(batches).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } },
  ]);
  for (const part of [Buffer.from(TRACE_ID, 'hex'), SPAN_NAME]) {
    expect(batches[0]?.body.includes(part)).toBe(true);
  }
});
