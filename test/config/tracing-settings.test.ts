import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { faultsOf } from '../support/setting-faults.ts';

const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('traces', () => {
  it.each([
    [{}, false],
    [{ OTEL_SERVICE_NAME: 'a', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, false],
    [{ OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
    [{ OTEL_TRACES_EXPORTER: 'OTLP' }, true],
    [collector, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, true],
    [{ ...collector, OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ ...collector, OTEL_SDK_DISABLED: 'true' }, false],
    [{ ...collector, OTEL_SDK_DISABLED: 'TRUE' }, false],
    [{ ...collector, OTEL_SDK_DISABLED: 'false' }, true],
    [{ OTEL_SDK_DISABLED: 'true', OTEL_TRACES_EXPORTER: 'otlp' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, false],
  ])('with %j are on: %s', (environment, isOn) => {
    expect(readConfig(environment).tracing !== undefined).toBe(isOn);
  });

  it('have the defaults of OpenTelemetry, and our name', () => {
    expect(readConfig({ OTEL_TRACES_EXPORTER: 'otlp' }).tracing).toEqual({
      url: 'http://localhost:4318/v1/traces',
      protocol: 'http/protobuf',
      headers: {},
      timeoutMs: 10_000,
      compression: 'none',
      secrets: [],
      resource: { 'service.name': 'darkroom' },
      sampler: { kind: 'parentbased_always_on', ratio: 1 },
      isContinuing: true,
      batch: { delayMs: 5_000, timeoutMs: 30_000, maxWaitingSpans: 2_048, maxSpans: 512 },
    });
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a/' }, 'https://a/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:1/otlp' }, 'http://a:1/otlp/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:1/otlp/' }, 'http://a:1/otlp/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a:1/' }, 'http://a:1/'],
    [{ ...collector, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a:1/t' }, 'http://a:1/t'],
  ])('with %j go to %s', (environment, url) => {
    expect(readConfig(environment).tracing?.url).toBe(url);
  });

  it('take for themselves what is meant for them alone', () => {
    const general = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1,b=2',
    };
    const special = {
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '200',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=3',
    };
    expect(readConfig({ ...collector, ...general }).tracing).toMatchObject({
      protocol: 'http/protobuf',
      timeoutMs: 100,
      compression: 'none',
      headers: { a: '1', b: '2' },
    });
    expect(readConfig({ ...collector, ...general, ...special }).tracing).toMatchObject({
      protocol: 'http/json',
      timeoutMs: 200,
      compression: 'gzip',
      headers: { a: '1', b: '3' },
    });
  });

  it.each([
    ['api-key=k1', { 'api-key': 'k1' }],
    [' a = 1 , b = 2 ,', { a: '1', b: '2' }],
    ['authorization=Basic%20dTpwdw==', { authorization: 'Basic dTpwdw==' }],
    ['authorization=Bearer abc', { authorization: 'Bearer abc' }],
    ['a=', { a: '' }],
  ])('send the headers of "%s"', (text, headers) => {
    const given = { ...collector, OTEL_EXPORTER_OTLP_HEADERS: text };
    expect(readConfig(given).tracing?.headers).toEqual(headers);
  });

  it('name what of the headers must not be told', () => {
    const given = { ...collector, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc,k=v' };
    expect(readConfig(given).tracing?.secrets).toEqual(
      expect.arrayContaining(['Bearer abc', 'abc', 'v']),
    );
  });

  it.each([
    ['service.version=1,service.name=b', { 'service.name': 'b', 'service.version': '1' }],
    ['a%2Cb=c%3Dd', { 'service.name': 'darkroom', 'a,b': 'c=d' }],
  ])('tell the attributes of "%s"', (text, resource) => {
    const given = { ...collector, OTEL_RESOURCE_ATTRIBUTES: text };
    expect(readConfig(given).tracing?.resource).toEqual(resource);
    expect(readConfig({ ...given, OTEL_SERVICE_NAME: 'c' }).tracing?.resource).toEqual({
      ...resource,
      'service.name': 'c',
    });
  });

  it.each([
    ['tracecontext,baggage', true],
    ['TraceContext', true],
    ['baggage', false],
    ['none', false],
    ['tracecontext,none', false],
  ])('go on from those who ask with OTEL_PROPAGATORS=%s: %s', (text, isContinuing) => {
    expect(readConfig({ ...collector, OTEL_PROPAGATORS: text }).tracing).toMatchObject({
      isContinuing,
    });
  });

  it('send no more at once than may wait', () => {
    const few = { ...collector, OTEL_BSP_MAX_QUEUE_SIZE: '100' };
    expect(readConfig(few).tracing?.batch).toMatchObject({ maxWaitingSpans: 100, maxSpans: 100 });
    expect(faultsOf({ ...few, OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '101' })).toEqual([
      'OTEL_BSP_MAX_EXPORT_BATCH_SIZE: expected at most OTEL_BSP_MAX_QUEUE_SIZE but received "101"',
    ]);
    expect(faultsOf({ ...few, OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '100' })).toEqual([]);
  });
});

describe('a wrong setting of traces', () => {
  it('that another one stands in for is no fault', () => {
    const general = { ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    expect(faultsOf(general)).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL: expected http/protobuf or http/json, for OTLP over gRPC is not spoken here, but received "grpc"',
    ]);
    const own = { ...general, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' };
    expect(readConfig(own).tracing).toMatchObject({ protocol: 'http/json' });
  });

  it.each([
    ['OTEL_SDK_DISABLED', 'yes', 'true or false', '"yes"'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'otlp or none', '"zipkin"'],
  ])('is told whether they are on or not: %s=%s', (name, value, form, received) => {
    expect(faultsOf({ [name]: value })).toEqual([
      `${name}: expected ${form} but received ${received}`,
    ]);
  });

  const url = 'an http or https URL without query or credentials';
  const wrong: [string, string, string, string][] = [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', url, '"collector:4318"'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://u:pw@a/', url, '"http://***@a/"'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'http://a/?key=k', url, '"http://a/?***"'],
    [
      'OTEL_EXPORTER_OTLP_HEADERS',
      'abc',
      'name=value pairs of headers, separated by commas',
      '***',
    ],
    [
      'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
      'a b=c',
      'name=value pairs of headers, separated by commas',
      '***',
    ],
    [
      'OTEL_EXPORTER_OTLP_HEADERS',
      'a=b%0d%0ac',
      'name=value pairs of headers, separated by commas',
      '***',
    ],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '0', 'an integer from 1 to 600000 (milliseconds)', '"0"'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zstd', 'none or gzip', '"zstd"'],
    [
      'OTEL_RESOURCE_ATTRIBUTES',
      'a=b=c',
      'name=value pairs, separated by commas, with "," and "=" percent-encoded',
      '"a=b=c"',
    ],
    [
      'OTEL_TRACES_SAMPLER',
      'jaeger_remote',
      'parentbased_always_on or parentbased_always_off or parentbased_traceidratio or always_on or always_off or traceidratio',
      '"jaeger_remote"',
    ],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', 'a number from 0 to 1', '"1.5"'],
    ['OTEL_TRACES_SAMPLER_ARG', '-0.1', 'a number from 0 to 1', '"-0.1"'],
    ['OTEL_PROPAGATORS', 'b3', 'tracecontext, baggage or none', '"b3"'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', 'many', 'an integer from 1 to 1000000 (spans)', '"many"'],
  ];

  it.each(wrong)('is told where they are on: %s=%s', (name, value, form, received) => {
    expect(faultsOf({ OTEL_TRACES_EXPORTER: 'otlp', [name]: value })).toEqual([
      `${name}: expected ${form} but received ${received}`,
    ]);
  });

  it.each(wrong)("is somebody else's where they are off: %s=%s", (name, value) => {
    expect(faultsOf({ OTEL_SDK_DISABLED: 'true', [name]: value })).toEqual([]);
  });
});
