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

  it.each([
    [{}, 'http/protobuf'],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'HTTP/JSON' }, 'http/json'],
    [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, 'http/json'],
    [
      {
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      },
      'http/json',
    ],
  ])('with %j are sent as %s', (environment, protocol) => {
    expect(readConfig({ ...collector, ...environment }).tracing?.protocol).toBe(protocol);
  });

  it.each([
    [undefined, true],
    ['tracecontext,baggage', true],
    ['TraceContext', true],
    ['baggage', false],
    ['none', false],
    ['tracecontext,none', false],
  ])('go on from those who ask with OTEL_PROPAGATORS=%s: %s', (OTEL_PROPAGATORS, isContinuing) => {
    expect(readConfig({ ...collector, OTEL_PROPAGATORS }).tracing).toMatchObject({ isContinuing });
  });

  it('name what of the headers must not stand in the log', () => {
    const given = {
      ...collector,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, k = v',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'broken=%zz',
    };
    const secrets = readConfig(given).tracing?.secrets;
    expect(secrets).toEqual(expect.arrayContaining(['Bearer abc', 'abc', 'v', '%zz']));
    expect(secrets).not.toContain('authorization');
  });
});

describe('a wrong setting of traces', () => {
  const grpc = 'http/protobuf or http/json, for OTLP over gRPC is not spoken here,';

  it.each([
    [{ OTEL_SDK_DISABLED: 'yes' }, 'OTEL_SDK_DISABLED: expected true or false', '"yes"'],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: expected otlp or none', '"zipkin"'],
    [
      { ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      `OTEL_EXPORTER_OTLP_PROTOCOL: expected ${grpc}`,
      '"grpc"',
    ],
    [
      { ...collector, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
      `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: expected ${grpc}`,
      '"grpc"',
    ],
  ])('is a fault where the SDK does not judge it: %j', (given, expected, received) => {
    expect(faultsOf(given)).toEqual([`${expected} but received ${received}`]);
  });

  it.each([
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { ...collector, OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { ...collector, OTEL_EXPORTER_OTLP_TIMEOUT: 'soon', OTEL_TRACES_SAMPLER: 'jaeger_remote' },
  ])('is none where it has no say, or the SDK judges it: %j', (given) => {
    expect(faultsOf(given)).toEqual([]);
  });
});
