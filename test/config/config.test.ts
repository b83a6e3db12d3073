import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../src/config/config.ts';
import { settingNames, settingTable } from '../../src/config/settings.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const MEBIBYTE = 2 ** 20;
const key = 'an-example-key-of-thirty-two-bytes-or-more';
const bucket = { STORAGE: 's3', S3_BUCKET: 'b' };
const bucketText = 'STORAGE=s3 S3_BUCKET=b';
const collector = 'OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318';

/** Variables as in a shell, percent-encoded, and the resulting configuration in JSON. */
const readings = `
 → listen={"host":"127.0.0.1","port":3000}
 → storage={"kind":"filesystem","directory":"${resolve('fixtures/originals')}","isSample":true}
 → originLimits.firstByteTimeoutMs=5000 originLimits.bodyTimeoutMs=30000 originLimits.maxOriginalBytes=${50 * MEBIBYTE}
 → renderLimits.maxInputPixels=100000000 renderLimits.maxAnimationPixels=250000000 renderLimits.maxFrames=1024 renderLimits.maxResultBytes=${100 * MEBIBYTE} renderLimits.timeoutMs=15000
 → originReads={"slots":64,"maxWaiting":1024,"maxWaitMs":5000} originStreams={"slots":256,"maxWaiting":1024,"maxWaitMs":5000}
 → originalsMemoryBytes=${512 * MEBIBYTE} renderer.memoryBytes={"light":${338 * MEBIBYTE},"heavy":${2_222 * MEBIBYTE}}
 → admission.maxWaitingPerCore=64 admission.maxWaitMs=5000 records.freshForMs=300000 records.missingForMs=30000
 → cache.maxBytes=${256 * MEBIBYTE} cache.originalBytes=${64 * MEBIBYTE} shutdown.graceMs=20000 log.level="info"
 → http.maxAgeSeconds={"media":31536000,"defaultAvatar":86400,"notFound":30,"unknownMedia":30,"refused":300}
 → resultStore=undefined admin=undefined attachments.mode="off" attachments.signing=undefined external=undefined tracing=undefined
PORT= WORKERS= → listen.port=3000
TRUST_PROXY=true → http.trustProxy=true
TRUST_PROXY=false → http.trustProxy=false
TRUST_PROXY=10.0.0.0/8,%20::1 → http.trustProxy=["10.0.0.0/8","::1"]
WORKERS=1 → renderer.workers={"light":2,"heavy":1}
 → renderer.videoDecoder={"program":"auto","memoryBytes":${512 * MEBIBYTE},"mayBeWeaker":false,"timeoutMs":15000} video.maxReadBytes=${24 * MEBIBYTE}
VIDEO_DECODER=off → renderer.videoDecoder.program="off"
VIDEO_DECODER=/opt/ffmpeg TRANSFORM_TIMEOUT_MS=5 → renderer.videoDecoder={"program":"/opt/ffmpeg","memoryBytes":${512 * MEBIBYTE},"mayBeWeaker":false,"timeoutMs":5}
VIDEO_DECODER_CONFINEMENT=best → renderer.videoDecoder.mayBeWeaker=true
VIDEO_DECODER_CONFINEMENT=best REQUIRE_CONFINEMENT=true → renderer.videoDecoder.mayBeWeaker=false
WORKERS=8 → renderer.workers={"light":9,"heavy":8}
WORKERS=5 WORKER_MEMORY_BYTES=${600 * MEBIBYTE} → renderer.workers={"light":6,"heavy":1}
WORKERS=1 WORKER_MEMORY_BYTES=${600 * MEBIBYTE} → renderer.workers={"light":1,"heavy":0}
WORKERS=1 WORKER_MEMORY_BYTES=${600 * MEBIBYTE} → renderer.memoryBytes={"light":${600 * MEBIBYTE},"heavy":${600 * MEBIBYTE}}
MAX_CONNECTIONS=2 → http.maxConnections=2
${bucketText} → storage.kind="s3" storage.bucket="b" storage.prefix="" storage.region="us-east-1"
${bucketText} → storage.endpoint=undefined storage.forcePathStyle=false storage.maxConnections=${64 + 256} storage.connectTimeoutMs=2000
${bucketText} S3_PREFIX=media → storage.prefix="media/"
${bucketText} S3_PREFIX=a/b%20c/ü/ → storage.prefix="a/b\\u0020c/ü/"
${bucketText} S3_ENDPOINT=http://[::1]:9000 S3_REGION=here → storage.endpoint="http://[::1]:9000" storage.forcePathStyle=true storage.region="here"
${bucketText} S3_ENDPOINT=http://[::1]:9000 S3_FORCE_PATH_STYLE=false → storage.forcePathStyle=false
RESULT_STORE=filesystem RESULT_STORE_DIR=src → resultStore={"kind":"filesystem","directory":"src","maxBytes":${10_240 * MEBIBYTE}}
RESULT_STORE=s3 RESULT_S3_BUCKET=c → resultStore.kind="s3" resultStore.bucket="c" resultStore.prefix="" resultStore.maxConnections=64
RESULT_STORE=s3 RESULT_S3_BUCKET=c S3_ENDPOINT=http://[::1]:9000 → resultStore.endpoint="http://[::1]:9000" resultStore.forcePathStyle=true
RESULT_STORE=s3 RESULT_S3_BUCKET=c S3_REGION=here → resultStore.region="here" resultStore.connectTimeoutMs=2000 resultStore.timeoutMs=10000
COMPATIBILITY=fluxer → http.maxAgeSeconds.notFound=30 http.maxAgeSeconds.unknownMedia=undefined records.missingForMs=2000
PUBLIC_URLS=https://CDN.example./ → parseOptions.publicUrls=[{"origin":"https://cdn.example","segments":[]}]
PUBLIC_URLS=http://a.example:80,https://b.example:8443/a%2525b/c/ → parseOptions.publicUrls=[{"origin":"http://a.example","segments":[]},{"origin":"https://b.example:8443","segments":["a%b","c"]}]
EXTERNAL_SIGNING_KEYS=${key} → external.pathEncoding="plain" external.publicUrls=[]
EXTERNAL_SIGNING_KEYS=${key} COMPATIBILITY=fluxer → external.pathEncoding="fluxer"
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_PATH_ENCODING=fluxer → external.pathEncoding="fluxer"
EXTERNAL_SIGNING_KEYS=${key} COMPATIBILITY=fluxer EXTERNAL_PATH_ENCODING=plain → external.pathEncoding="plain"
COMPATIBILITY=fluxer NOT_FOUND_MAX_AGE_SECONDS=1 → records.missingForMs=1000
ADMIN_TOKEN=a-token-of-the-tests → admin=undefined
ADMIN_PORT=9090 ADMIN_TOKEN=a-token-of-the-tests → admin.listen={"host":"127.0.0.1","port":9090} admin.token="a-token-of-the-tests"
ATTACHMENT_SIGNING_KEYS=${key} → attachments.mode="off" attachments.signing.domain="attachment-url-v1" attachments.signing.keys.secrets=["${key}"]
ATTACHMENT_SIGNING_KEYS=${key} ATTACHMENT_SIGNING=enforce ATTACHMENT_SIGNING_DOMAIN=v7 → attachments.mode="enforce" attachments.signing.domain="v7"
EXTERNAL_PORTS=80 → external=undefined
EXTERNAL_SIGNING_KEYS=${key} → external.keys.secrets=["${key}"] external.ports=[80,443] external.dnsServers=undefined
EXTERNAL_SIGNING_KEYS=${key} → external.maxBytes=${500 * MEBIBYTE} external.minAgeSeconds=3600 external.maxAgeSeconds=604800
EXTERNAL_SIGNING_KEYS=${key} → external.allowedHosts=[] external.blockedHosts=[] external.allowedNetworks=[] external.blockedNetworks=[] external.nat64Prefixes=[]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_PORTS=80,%208443 → external.ports=[80,8443]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_ALLOWED_HOSTS=Example.org,bücher.example. → external.allowedHosts=["example.org","xn--bcher-kva.example"]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_BLOCKED_HOSTS=a.example.org → external.blockedHosts=["a.example.org"]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_ALLOWED_NETWORKS=10.1.0.0/16,::1 → external.allowedNetworks=["10.1.0.0/16","::1"]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_BLOCKED_NETWORKS=203.0.113.7 → external.blockedNetworks=["203.0.113.7"]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_NAT64_PREFIXES=2001:db8:64::/96 → external.nat64Prefixes=["2001:db8:64::/96"]
EXTERNAL_SIGNING_KEYS=${key} EXTERNAL_DNS_SERVERS=127.0.0.1:5353,::1,[::1]:53 → external.dnsServers=["127.0.0.1:5353","::1","[::1]:53"]
OTEL_SERVICE_NAME=a OTEL_EXPORTER_OTLP_PROTOCOL=http/json → tracing=undefined
OTEL_SDK_DISABLED=true OTEL_TRACES_EXPORTER=otlp → tracing=undefined
OTEL_EXPORTER_OTLP_ENDPOINT= → tracing=undefined
${collector} OTEL_TRACES_EXPORTER=none → tracing=undefined
${collector} OTEL_SDK_DISABLED=TRUE → tracing=undefined
${collector} OTEL_SDK_DISABLED=false → tracing.isContinuing=true
${collector} → tracing.protocol="http/protobuf" tracing.isContinuing=true
OTEL_TRACES_EXPORTER=OTLP → tracing.isContinuing=true
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318/v1/traces → tracing.isContinuing=true
${collector} OTEL_EXPORTER_OTLP_PROTOCOL=HTTP/JSON → tracing.protocol="http/json"
${collector} OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json → tracing.protocol="http/json"
${collector} OTEL_PROPAGATORS=tracecontext,baggage → tracing.isContinuing=true
${collector} OTEL_PROPAGATORS=TraceContext → tracing.isContinuing=true
${collector} OTEL_PROPAGATORS=baggage → tracing.isContinuing=false
${collector} OTEL_PROPAGATORS=none → tracing.isContinuing=false
${collector} OTEL_PROPAGATORS=tracecontext,none → tracing.isContinuing=false
`;

const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');

test.each(readings.slice(1, -1).split('\n'))('%s', (line) => {
  const [variables = '', parts = ''] = line.split(' → ');
  const given = words(variables).map((each) => decodeURIComponent(each).split(/=(.*)/s));
  const config: unknown = readConfig(Object.fromEntries(given), 2 ** 36);
  expect(words(parts)).not.toEqual([]);
  for (const part of words(parts)) {
    const [path = '', value = ''] = part.split(/=(.*)/s);
    const read = path
      .split('.')
      .reduce((whole, name) => (whole as Record<string, unknown>)[name], config);
    expect(read, path).toEqual(value === 'undefined' ? undefined : JSON.parse(value));
  }
});

describe('in a container of 512 MiB', () => {
  const read = (given: Readonly<Record<string, string>>) =>
    readConfig({ WORKERS: '1', ...given }, 512 * MEBIBYTE);

  test('the defaults fit', () => {
    expect(read({}).memory).toMatchObject({
      totalBytes: 512 * MEBIBYTE,
      cacheBytes: 8 * MEBIBYTE,
      isShort: false,
    });
    expect(read({}).renderer.videoDecoder.memoryBytes).toBe(240 * MEBIBYTE);
  });

  test.each([
    { CACHE_MEMORY_BYTES: '268435456' },
    { ORIGINALS_MEMORY_BYTES: '268435456' },
    { WORKER_MEMORY_BYTES: '2684354560' },
  ])('a setting takes precedence, and one that does not fit is reported: %j', (given) => {
    const { memory, renderer } = read(given);
    const { cacheBytes, originalsBytes } = memory;
    const reported = [cacheBytes, originalsBytes, renderer.memoryBytes.heavy + 338 * MEBIBYTE];
    expect(reported).toContain(Number(Object.values(given)[0]));
    expect(memory.isShort).toBe(true);
  });
});

test('values of headers for a collector are secret, their names are not', () => {
  const secrets = readConfig({
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, k = v',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'broken=%zz',
  }).tracing?.secrets;
  expect(secrets).toEqual(expect.arrayContaining(['Bearer abc', 'abc', 'v', '%zz']));
  expect(secrets).not.toContain('authorization');
});

test('no secret is passed to the workers', () => {
  const { environment } = readConfig({ AWS_SECRET_ACCESS_KEY: 's', PATH: '/bin' }).renderer;
  expect(environment).toEqual({ PATH: '/bin' });
});

describe('the explorer', () => {
  test.each([
    [{}, true],
    [{ HOST: '127.8.0.1' }, true],
    [{ HOST: '::1' }, true],
    [{ HOST: 'localhost', NODE_ENV: 'test' }, true],
    [{ HOST: '0.0.0.0' }, false],
    [{ HOST: '::' }, false],
    [{ HOST: '127.media.example' }, false],
    [{ NODE_ENV: 'production', STORAGE_DIR: 'src' }, false],
    [bucket, false],
    [{ EXPLORER: 'off' }, false],
    // A page must not list originals whose URLs must be signed.
    [{ EXTERNAL_SIGNING_KEYS: key }, false],
    [{ ATTACHMENT_SIGNING_KEYS: key }, false],
    [{ RELAY_SIGNING_KEYS: key }, false],
  ])('is on by default with %j: %s', (given, isOn) => {
    expect(readConfig(given).explorer).toEqual({ isOn, isExposed: false });
    const isExposed = !isOn && ('HOST' in given || 'NODE_ENV' in given);
    expect(readConfig({ ...given, EXPLORER: 'on' }).explorer).toEqual({ isOn: true, isExposed });
  });
});

test.each([
  ['STORAGE_DIRR', '; did you mean STORAGE_DIR?'],
  ['S3_PREFFIX', '; did you mean S3_PREFIX?'],
  ['LOG_LEVL', '; did you mean LOG_LEVEL?'],
  ['TRUSTPROXY', '; did you mean TRUST_PROXY?'],
  ['WORKER', '; did you mean WORKERS?'],
  ['STORAGE_DIRECTORY', ''],
  ['S3_KEY', ''],
  ['CACHE_MEMORY', ''],
])('warns about %s, which resembles a setting%s', (name, guess) => {
  const { unknownSettings } = readConfig({ [name]: 'hush' });
  const message = `${name} is not a setting of Darkroom${guess}`;
  expect(unknownSettings).toMatchObject([{ message }]);
});

test.each([
  [{ RESULT_STORE_DIR: 'src' }, 'RESULT_STORE_DIR has no effect while RESULT_STORE is none'],
  [
    { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: 'src', RESULT_S3_BUCKET: 'b' },
    'RESULT_S3_BUCKET has no effect while RESULT_STORE is filesystem',
  ],
  [{ BLOCKLIST_FILE: '/nowhere' }, 'BLOCKLIST_FILE has no effect while BLOCKLIST is none'],
  [{ BLOCKLIST_S3_BUCKET: 'b' }, 'BLOCKLIST_S3_BUCKET has no effect while BLOCKLIST is none'],
  [{ ADMIN_TOKEN: 'x'.repeat(16) }, 'ADMIN_TOKEN has no effect while ADMIN_PORT is not set'],
  [{ INTERNAL_TOKEN: key }, 'INTERNAL_TOKEN has no effect while INTERNAL_PORT is not set'],
  [{ EDGE_ZONE: 'a' }, 'EDGE_ZONE has no effect while EDGE is not set'],
])('warns about %j, which another setting disables', (given, message) => {
  const { unusedSettings } = readConfig(given);
  expect(unusedSettings.map((each) => each.message)).toEqual([message]);
});

test('does not warn about settings in use', () => {
  const given = { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: 'src', ADMIN_PORT: '1' };
  expect(readConfig({ ...given, ADMIN_TOKEN: 'x'.repeat(16) }).unusedSettings).toEqual([]);
});

test('errors and warnings are reported together', () => {
  const given = { PORT: 'many', STORAGE_DIRR: 'src', RESULT_STORE_DIR: 'src' };
  expect.assertions(2);
  try {
    readConfig(given);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      warnings: [
        { name: 'STORAGE_DIRR', message: expect.any(String) },
        { name: 'RESULT_STORE_DIR', message: expect.any(String) },
      ],
    });
  }
});

test.each([
  ['268435456', 2 ** 28],
  ['262144KiB', 2 ** 28],
  ['256MiB', 2 ** 28],
  ['2GiB', 2 ** 31],
  ['0', 0],
  ['0MiB', 0],
])('reads the size %s', (text, size) => {
  expect(readConfig({ CACHE_MEMORY_BYTES: text }).cache.maxBytes).toBe(size);
});

test('does not warn about variables of other programs or known ones', () => {
  const others = 'HOME HOSTNAME SORT LOG_FORMAT MAX_MEMORY NODE_OPTIONS AWS_S3_REGION MEDIA_ROOT';
  const names = [...others.split(' '), 'OTEL_METRICS_EXPORTER', 'STORAGE'];
  const given = Object.fromEntries(names.map((name) => [name, 'filesystem']));
  expect(readConfig(given).unknownSettings).toEqual([]);
});

test('the redaction of the log covers all secrets, even those that no other setting needs', async () => {
  const { path, put } = await useTemporaryDirectory();
  const names = settingNames.filter((name) => 'isSecret' in settingTable[name]);
  expect(names).toContain('INTERNAL_TOKEN');
  for (const name of names) {
    const secret = `the-secret-of-${name}-with-more-than-32-bytes`.replaceAll('_', '.');
    await put(name, `${secret}\n`);
    const value = name.endsWith('_FILE') ? join(path, name) : secret;
    expect(readConfig({ [name]: value }).secrets, name).toContain(secret);
  }
  // Also secrets of the AWS SDK and OpenTelemetry.
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']) {
    expect(readConfig({ [name]: 'AKIA-EXAMPLE' }).secrets).toContain('AKIA-EXAMPLE');
  }
  const headers = { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hush-hush' };
  const traced = readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', ...headers });
  expect(traced.secrets).toContain('hush-hush');
});
