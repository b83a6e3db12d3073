import { expect, it } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { useOtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

const AVATAR = '/avatars/1/ab12.webp?size=16';
const SPAN_NAME = 'GET /avatars/{user_id}/{avatar_hash}.{ext}';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const headers = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };
const NEVER = { OTEL_BSP_SCHEDULE_DELAY: '600000' };

/** Starts a service, sends two requests, runs `check`, and stops it. */
async function trace(environment: Readonly<Record<string, string>>, check = () => {}) {
  const service = await useService(environment);
  for (let time = 0; time < 2; time += 1) {
    const response = await fetch(service.origin + AVATAR, { headers });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
  }
  check();
  expect(await service.stop()).toBe(0);
  return service.output();
}

it.each([
  [false, {}],
  [true, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
])('OpenTelemetry is loaded: %s, with %j', async (isLoaded, environment) => {
  const NODE_OPTIONS = '--import ./test/support/telemetry/module-watch.mjs';
  const output = await trace({ NODE_OPTIONS, ...environment });
  expect(output).toContain('imported fastify\n');
  expect(/^imported dist\/telemetry\/opentelemetry\.js$/m.test(output)).toBe(isLoaded);
  // The bundle is complete: an installation does not have the packages.
  expect(output).not.toContain('imported @opentelemetry/');
});

it('sends remaining spans when the service stops', async () => {
  const collector = await useOtlpReceiver();
  const settings = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/here`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    ...NEVER,
  };
  await trace(settings, () => expect(collector.batches).toEqual([]));
  expect(collector.batches.map(({ path }) => path)).toEqual(['/here']);
  const servers = collector.spans.filter(({ kind }) => kind === 2);
  const span = { name: SPAN_NAME, traceId: TRACE_ID };
  expect(servers).toMatchObject([span, span]);
  const render = collector.spans.find(({ name }) => name === 'render');
  expect(render?.durationMs).toBeGreaterThan(0.1);
  expect(render?.durationMs).toBeLessThan(servers[0]?.durationMs ?? 0);
});

it('sends protobuf by default', async () => {
  const { url, batches } = await useOtlpReceiver();
  await trace({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...NEVER });
  expect(batches).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } },
  ]);
  for (const part of [Buffer.from(TRACE_ID, 'hex'), SPAN_NAME]) {
    expect(batches[0]?.body.includes(part)).toBe(true);
  }
});
