import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

const AVATAR = '/avatars/1/ab12.webp?size=16';
const SPAN_NAME = 'GET /avatars/{user_id}/{avatar_hash}.{ext}';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const headers = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };

let collector: OtlpReceiver;
let service: ServiceProcess | undefined;

beforeEach(async () => {
  collector = await startOtlpReceiver();
});
afterEach(async () => {
  await service?.stop('SIGKILL');
  service = undefined;
  await collector.close();
});

async function start(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  service = await startService(environment);
  return service;
}

async function ask({ origin }: ServiceProcess, target = AVATAR): Promise<number> {
  const response = await fetch(`${origin}${target}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** Names of the packages that a service has imported from its start to the end of two requests. */
async function importsWith(environment: Readonly<Record<string, string>>): Promise<Set<string>> {
  const running = await start({
    NODE_OPTIONS: '--import ./test/support/telemetry/module-watch.mjs',
    ...environment,
  });
  for (let time = 0; time < 2; time += 1) expect(await ask(running)).toBe(200);
  expect(await running.stop()).toBe(0);
  const names = [...running.output().matchAll(/^imported (.+)$/gm)].map(([, name]) => name ?? '');
  return new Set(names);
}

const isOpenTelemetry = (name: string): boolean => name.startsWith('@opentelemetry/');

describe('OpenTelemetry', () => {
  it.each([
    [{}],
    [{ OTEL_SERVICE_NAME: 'darkroom', OTEL_TRACES_SAMPLER: 'always_on' }],
    [{ OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
    [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
  ])('is not even loaded with %j', async (environment) => {
    const names = await importsWith(environment);
    expect(names).toContain('fastify');
    expect([...names].filter(isOpenTelemetry)).toEqual([]);
  });

  it('is loaded where there is a collector', async () => {
    const names = await importsWith({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    expect([...names].filter(isOpenTelemetry)).not.toEqual([]);
  });
});

describe('a traced service', () => {
  it('sends what it has not sent yet when it is stopped', async () => {
    const running = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    });
    expect(await ask(running)).toBe(200);
    expect(await ask(running)).toBe(200);
    expect(collector.batches).toEqual([]);
    expect(await running.stop()).toBe(0);
    expect(collector.batches).toMatchObject([
      { path: '/v1/traces', headers: { 'content-type': 'application/json' } },
    ]);
    const servers = collector.spans.filter(({ kind }) => kind === 2);
    expect(servers).toMatchObject([
      {
        name: SPAN_NAME,
        traceId: TRACE_ID,
        parentSpanId: '00f067aa0ba902b7',
        attributes: { 'http.response.status_code': 200, 'darkroom.cache': 'miss' },
        resource: { 'service.name': 'darkroom' },
      },
      { attributes: { 'darkroom.cache': 'memory' } },
    ]);
    const [cold] = servers;
    const stages = collector.spans.filter(({ parentSpanId }) => parentSpanId === cold?.spanId);
    const render = stages.find(({ name }) => name === 'render');
    expect(render?.durationMs).toBeGreaterThan(0.1);
    expect(render?.durationMs).toBeLessThan(cold?.durationMs ?? 0);
    // A line of the log for the cold request, with the same id.
    expect(running.output()).toContain(`"traceId":"${TRACE_ID}"`);
  });

  it('sends protobuf unless it is set otherwise', async () => {
    const running = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    });
    expect(await ask(running)).toBe(200);
    expect(await running.stop()).toBe(0);
    expect(collector.batches).toMatchObject([
      { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } },
    ]);
    const [batch] = collector.batches;
    expect(batch?.body.includes(Buffer.from(TRACE_ID, 'hex'))).toBe(true);
    expect(batch?.body.includes(SPAN_NAME)).toBe(true);
  });

  it('serves as ever while its traces are not taken, logs that once, and stops in time', async () => {
    await collector.close();
    const running = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hush-hush-hush',
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    const failures = () => running.output().match(/traces cannot be sent/g) ?? [];
    expect(await ask(running)).toBe(200);
    await expect.poll(failures).toHaveLength(1);
    for (let time = 0; time < 5; time += 1) {
      const beganMs = performance.now();
      expect(await ask(running)).toBe(200);
      expect(performance.now() - beganMs).toBeLessThan(1_000);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(failures()).toHaveLength(1);
    expect(running.output()).toContain('ECONNREFUSED');

    collector = await startOtlpReceiver(collector.port);
    await expect
      .poll(async () => {
        await ask(running);
        return running.output();
      })
      .toContain('traces are taken again');
    expect(collector.batches[0]?.headers).toMatchObject({ authorization: 'Bearer hush-hush-hush' });
    await collector.close();
    // Wherever it is written into a line, it is not read there.
    expect(await ask(running, '/x/hush-hush-hush')).toBe(404);
    expect(await running.stop()).toBe(0);
    expect(running.output()).toContain('"asset":"/x/[redacted]"');
    expect(running.output()).not.toContain('hush-hush-hush');
  });

  it('starts with what the SDK does not understand, and warns of it', async () => {
    const running = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
    });
    expect(await ask(running)).toBe(200);
    for (const name of ['OTEL_EXPORTER_OTLP_TIMEOUT', 'OTEL_TRACES_SAMPLER']) {
      expect(running.output()).toMatch(new RegExp(`"level":40.*"reason":".*${name}`));
    }
    expect(await running.stop()).toBe(0);
    expect(collector.batches).not.toEqual([]);
  });

  it('does not start with a protocol that is not spoken', async () => {
    const attempt = startService({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    });
    await expect(attempt).rejects.toThrow(
      'OTEL_EXPORTER_OTLP_PROTOCOL: expected http/protobuf or http/json, for OTLP over gRPC is not spoken here, but received "grpc"',
    );
  });
});
