import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { countCores, planConnections } from '../../src/config/machine-limits.ts';
import { keySettingNames } from '../../src/config/variables/key-settings.ts';
import { faultsOf } from '../support/setting-faults.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const former = 'the-key-of-last-month-which-still-verifies';

const listed = 'BLOCKLIST=filesystem BLOCKLIST_FILE=src/blocks.jsonl';

const bucket = 'STORAGE=s3 S3_BUCKET=a BLOCKLIST=s3';
const served = 'BLOCKLIST_FILE: a file outside of STORAGE_DIR and UPLOADS_DIR';
const servedKey =
  'BLOCKLIST_S3_KEY: a key that no original can have, since the list is in S3_BUCKET';

/** Variables as in a shell, and their errors: name, expected value and, if it is masked, the received value. */
const examples = `
PORT=65536 → PORT: an integer from 0 to 65535
WORKERS=0 → WORKERS: an integer from 1 to 1024 (cores)
TRUST_PROXY=10.0.0.0/33 → TRUST_PROXY: true, false, or a comma-separated list of IP addresses and networks
LOG_LEVEL=loud → LOG_LEVEL: one of fatal, error, warn, info, debug, trace, silent
HOST=999.1.1.1 → HOST: an IP address or a host name
HOST=not_a_host! → HOST: an IP address or a host name
HOST=::1 →
HOST=0.0.0.0 →
HOST=localhost →
REQUIRE_CONFINEMENT=yes → REQUIRE_CONFINEMENT: true or false
TLS_KEY_FILE=package.json → TLS_CERT_FILE: a file, since TLS_KEY_FILE is set
STORAGE=floppy → STORAGE: filesystem or s3
STORAGE_DIR=/nowhere → STORAGE_DIR: an existing directory
NODE_ENV=production → STORAGE_DIR: an existing directory, since NODE_ENV is production
NODE_ENV=production STORAGE_DIR=src →
NODE_ENV=production STORAGE=s3 S3_BUCKET=b →
STORAGE=s3 S3_BUCKET=b STORAGE_DIR=/nowhere →
STORAGE=s3 STORAGE_DIR=/nowhere → S3_BUCKET: the name of a bucket, since STORAGE is s3
MAX_ORIGINAL_BYTES=104857600 WORKER_MEMORY_BYTES=272629760 →
MAX_ORIGINAL_BYTES=104857600 WORKER_MEMORY_BYTES=272629759 → WORKER_MEMORY_BYTES: at least 160 MiB more than MAX_ORIGINAL_BYTES
WORKER_MEMORY_BYTES=268435456 →
WORKER_MEMORY_BYTES=256MiB →
WORKER_MEMORY_BYTES=255MiB → WORKER_MEMORY_BYTES: a size from 256MiB to 1024GiB (in bytes, or with KiB, MiB or GiB)
CACHE_MEMORY_BYTES=256M → CACHE_MEMORY_BYTES: a size from 0 to 1024GiB (in bytes, or with KiB, MiB or GiB)
CACHE_MEMORY_BYTES=1.5GiB → CACHE_MEMORY_BYTES: a size from 0 to 1024GiB (in bytes, or with KiB, MiB or GiB)
CACHE_MEMORY_BYTES=256mib → CACHE_MEMORY_BYTES: a size from 0 to 1024GiB (in bytes, or with KiB, MiB or GiB)
RELAY_STRIP_METADATA=yes → RELAY_STRIP_METADATA: true or false
RELAY_MAX_BYTES=5121MiB → RELAY_MAX_BYTES: a size from 1 to 5GiB (in bytes, or with KiB, MiB or GiB)
MAX_RESULT_BYTES=1GiB →
RESULT_STORE=filesystem → RESULT_STORE_DIR: an existing directory, since RESULT_STORE is filesystem
RESULT_STORE=s3 → RESULT_S3_BUCKET: the name of a bucket, since RESULT_STORE is s3
BLOCKLIST=filesystem → BLOCKLIST_FILE: a file in an existing directory, since BLOCKLIST is filesystem
BLOCKLIST=filesystem BLOCKLIST_FILE=/nowhere/blocks.jsonl → BLOCKLIST_FILE: a file in an existing directory, since BLOCKLIST is filesystem
BLOCKLIST=s3 → BLOCKLIST_S3_BUCKET: the name of a bucket, since BLOCKLIST is s3
INTERNAL_PORT=9091 → INTERNAL_TOKEN: a token, since INTERNAL_PORT is set
ADMIN_PORT=9090 → ADMIN_TOKEN: a token, since ADMIN_PORT is set
ADMIN_PORT=9090 ADMIN_TOKEN=short → ADMIN_TOKEN: at least 16 characters of A-Z a-z 0-9 . _ ~ + / = - *
${listed} EDGE=akamai EDGE_ZONE=a EDGE_TOKEN=12345678 → EDGE: one of cloudflare, fastly, bunny, cloudfront
${listed} EDGE=fastly EDGE_ZONE=a EDGE_TOKEN=12345678 →
BLOCKLIST=filesystem BLOCKLIST_FILE=fixtures/originals/blocks.jsonl → ${served}
BLOCKLIST=filesystem BLOCKLIST_FILE=src/blocks.jsonl STORAGE_DIR=src → ${served}
${bucket} BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=avatars/1/ab → ${servedKey}
${bucket} BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=emojis/1 → ${servedKey}
${bucket} BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=x/emojis/1 S3_PREFIX=x → ${servedKey}
${bucket} BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=emojis/1 S3_PREFIX=x →
${bucket} BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=y/emojis/1 S3_PREFIX=x →
BLOCKLIST=s3 S3_BUCKET=a BLOCKLIST_S3_BUCKET=a BLOCKLIST_S3_KEY=emojis/1 →
BLOCKLIST=filesystem BLOCKLIST_FILE=src/blocks.jsonl UPLOADS_DIR=src COMPATIBILITY=fluxer RELAY_SIGNING_KEYS=${key} → ${served}
${bucket} BLOCKLIST_S3_BUCKET=a →
${bucket} BLOCKLIST_S3_BUCKET=b BLOCKLIST_S3_KEY=avatars/1/ab →
${bucket} BLOCKLIST_S3_BUCKET=u UPLOADS_S3_BUCKET=u COMPATIBILITY=fluxer RELAY_SIGNING_KEYS=${key} → BLOCKLIST_S3_BUCKET: a bucket other than UPLOADS_S3_BUCKET
${listed} EDGE=cloudfront EDGE_ZONE=E2QWRUHAPOMQZL →
${listed} EDGE=fastly EDGE_ZONE=a EDGE_TOKEN=12345678 EDGE_API=http://127.0.0.1:9/client/v4/ →
EDGE=fastly EDGE_ZONE=a EDGE_TOKEN=12345678 → EDGE: nothing unless BLOCKLIST is set, since pending purges are stored next to the list
${listed} EDGE=fastly EDGE_TOKEN=12345678 → EDGE_ZONE: the id of a zone, since EDGE is set
${listed} EDGE=fastly EDGE_ZONE=a/b EDGE_TOKEN=12345678 → EDGE_ZONE: an id of A-Z a-z 0-9 _ -
${listed} EDGE=bunny EDGE_ZONE=a → EDGE_TOKEN: a token, since EDGE is bunny
${listed} EDGE=bunny EDGE_ZONE=a EDGE_TOKEN=1234567 → EDGE_TOKEN: at least 8 printable ASCII characters without spaces *
${listed} EDGE=bunny EDGE_ZONE=a EDGE_TOKEN_FILE=/nowhere → EDGE_TOKEN_FILE: a readable file of at least 8 printable ASCII characters without spaces *
${listed} EDGE=cloudfront EDGE_ZONE=a EDGE_API=127.0.0.1:9 → EDGE_API: an http or https URL without query or credentials
ATTACHMENT_SIGNING=on → ATTACHMENT_SIGNING: off or report or enforce
ATTACHMENT_SIGNING=report → ATTACHMENT_SIGNING_KEYS: a key, since ATTACHMENT_SIGNING is report
ATTACHMENT_SIGNING=enforce → ATTACHMENT_SIGNING_KEYS: a key, since ATTACHMENT_SIGNING is enforce
EXTERNAL_SIGNING_KEYS=short → EXTERNAL_SIGNING_KEYS: one key or several, separated by commas, each plain text or base64:…, at least 32 bytes long *
EXTERNAL_SIGNING_KEYS=${key}, → EXTERNAL_SIGNING_KEYS: one key or several, separated by commas, each plain text or base64:…, at least 32 bytes long *
EXTERNAL_SIGNING_KEYS=${key},short → EXTERNAL_SIGNING_KEYS: one key or several, separated by commas, each plain text or base64:…, at least 32 bytes long *
EXTERNAL_SIGNING_KEYS_FILE=${key} → EXTERNAL_SIGNING_KEYS_FILE: a readable file of keys, one per line, each plain text or base64:…, at least 32 bytes long *
EXTERNAL_PATH_ENCODING=twice → EXTERNAL_PATH_ENCODING: plain or fluxer
PUBLIC_URLS=cdn.example → PUBLIC_URLS: a comma-separated list, each item an http or https URL without query or credentials
PUBLIC_URLS=https://a.example,ftp://a.example → PUBLIC_URLS: a comma-separated list, each item an http or https URL without query or credentials
PUBLIC_URLS=https://a.example/%zz → PUBLIC_URLS: a comma-separated list, each item an http or https URL without query or credentials
EXTERNAL_PORTS=80,0 → EXTERNAL_PORTS: a comma-separated list, each item an integer from 1 to 65535
EXTERNAL_BLOCKED_NETWORKS=10.0.0.0/33 → EXTERNAL_BLOCKED_NETWORKS: a comma-separated list, each item an IP address or a network
EXTERNAL_ALLOWED_HOSTS=https://a.example → EXTERNAL_ALLOWED_HOSTS: a comma-separated list, each item a host name or an IP address
EXTERNAL_NAT64_PREFIXES=64:ff9b::/95 → EXTERNAL_NAT64_PREFIXES: a comma-separated list, each item an IPv6 network of 32, 40, 48, 56, 64 or 96 bits
EXTERNAL_DNS_SERVERS=dns.example → EXTERNAL_DNS_SERVERS: a comma-separated list, each item an IP address, optionally with a port (192.0.2.1:53, [2001:db8::1]:53)
EXTERNAL_MIN_AGE_SECONDS=700000 → EXTERNAL_MAX_AGE_SECONDS: at least EXTERNAL_MIN_AGE_SECONDS
OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc → OTEL_EXPORTER_OTLP_PROTOCOL: http/protobuf or http/json, since OTLP over gRPC is not supported,
OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc → OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: http/protobuf or http/json, since OTLP over gRPC is not supported,
OTEL_EXPORTER_OTLP_PROTOCOL=grpc →
OTEL_TRACES_EXPORTER=otlp OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_PROTOCOL=grpc →
OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_TIMEOUT=soon OTEL_TRACES_SAMPLER=jaeger_remote →
`;

test.each(examples.trim().split('\n'))('%s', (line) => {
  const [text = '', expected = ''] = line.split(/ →\s*/);
  const variables: Readonly<Record<string, string>> = Object.fromEntries(
    text.split(' ').map((each) => each.split(/=(.*)/s)),
  );
  const [name = '', syntax = ''] = expected.split(/: (.*)/s);
  const received = variables[name] === undefined ? 'nothing' : `"${variables[name]}"`;
  const fault = syntax.endsWith(' *')
    ? `${name}: expected ${syntax.slice(0, -2)} but received ***`
    : `${name}: expected ${syntax} but received ${received}`;
  expect(faultsOf(variables)).toEqual(expected === '' ? [] : [fault]);
});

test.each([
  ['S3_BUCKET', ['a/b']],
  ['S3_REGION', ['eu central']],
  ['S3_FORCE_PATH_STYLE', ['yes']],
  ['S3_PREFIX', ['/media', 'media//x', '../media', 'x'.repeat(513)]],
  [
    'S3_ENDPOINT',
    ['minio:9000', 'ftp://minio', 'http://', 'http://minio/b', 'http://minio?a', 'http://@minio'],
  ],
  ['ORIGIN_MAX_READS', ['0']],
  ['ORIGIN_MAX_STREAMS', ['0']],
  ['MAX_CONNECTIONS', ['0']],
  ['MAX_FRAMES', ['1.5', '-1', '1e3', ' 5', '0x10', 'NaN', '99999999999999999999']],
])('%s rejects %j', (name, values) => {
  const fault = new RegExp(`^${name}: expected .* but received ".*$`);
  for (const value of values) expect(faultsOf({ [name]: value }).join('\n')).toMatch(fault);
});

test.each([
  ['S3_ENDPOINT', 'https://key:se@cr/et@s3.example.net', '"https://***@s3.example.net"'],
  ['S3_ENDPOINT', 'key:secret@s3.example.net', '"***@s3.example.net"'],
  ['S3_ENDPOINT', 'https://a.example/?key=hush', '"https://a.example/?***"'],
  ['S3_ENDPOINT', 'key://secret@s3.example.net', '"***@s3.example.net"'],
  ['TLS_KEY_FILE', '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n', '***'],
  ['TLS_KEY_FILE', '-----BEGIN PRIVATE KEY-----\\nc2VjcmV0', '***'],
  ['TLS_KEY_FILE', 'c2VjcmV0\nc2VjcmV0', '***'],
  ['TLS_KEY_FILE', 'c2VjcmV0\rc2VjcmV0', '***'],
  ['ATTACHMENT_SIGNING_DOMAIN', 'two\nlines', '***'],
])('masks a secret in the wrong variable: %s=%j is shown as %s', (name, value, shown) => {
  const faults = faultsOf({ [name]: value }).filter((it) => it.startsWith(`${name}:`));
  expect(faults.map((it) => it.split(' but received ')[1])).toEqual([shown]);
});

test('rejects the token of the CDN from both a variable and a file', async () => {
  const { path, put } = await useTemporaryDirectory();
  await put('token', ' a-token-of-the-edge\n');
  const given = {
    ...{ BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') },
    ...{ EDGE: 'fastly', EDGE_ZONE: 'a', EDGE_TOKEN_FILE: join(path, 'token') },
  };
  expect(readConfig(given).cdn?.token).toBe('a-token-of-the-edge');
  expect(faultsOf({ ...given, EDGE_TOKEN: '12345678' })).toEqual([
    'EDGE_TOKEN: expected nothing, since EDGE_TOKEN_FILE is set but received ***',
  ]);
});

test('reports a certificate and a key that do not match', () => {
  const files = { TLS_CERT_FILE: 'package.json', TLS_KEY_FILE: 'fixtures/tls/key.pem' };
  expect(faultsOf(files).join('\n')).toMatch(
    /^TLS_CERT_FILE: expected a certificate with its key \(error:.*\) but received "package.json"$/,
  );
});

const OTHERS = (2 * 2 + 1) * countCores() + 64 + 256;

const everything = {
  ...{ WORKERS: '1', ORIGIN_MAX_READS: '100', ORIGIN_MAX_STREAMS: '300' },
  ...{ RESULT_STORE: 's3', EXTERNAL_SIGNING_KEYS: 'x', BLOCKLIST: 's3' },
  ...{ RELAY_SIGNING_KEYS: 'x', UPLOADS_S3_BUCKET: 'uploads' },
};

test.each([
  ['nothing set', {}, OTHERS],
  ['everything set', everything, 5 + 100 + 300 + 64 + 64 + 16 + 2 * 80],
])('the number of connections must fit the limit of open files, with %s', (_, given, others) => {
  const { max } = planConnections(others, 2_048);
  const env = { ...process.env, ...given, MAX_CONNECTIONS: String(max + 1), PORT: 'x' };
  // A fixed limit, regardless of that of this process.
  const limited = spawnSync('sh', ['-c', 'ulimit -n 2048; exec node dist/main.js'], { env });
  expect([limited.status, String(limited.stderr)]).toEqual([
    78,
    expect.stringContaining(
      `MAX_CONNECTIONS: expected at most ${max} with this limit of open files but received "${max + 1}"`,
    ),
  ]);
  expect(String(limited.stderr)).toContain('PORT: ');
});

test('the default number of connections fits the limit of open files', () => {
  expect(readConfig({}).http.maxConnections).toBe(planConnections(OTHERS).byDefault);
});

const KEY_FORM = 'each plain text or base64:…, at least 32 bytes long but received ***';
const KEYS = `one key or several, separated by commas, ${KEY_FORM}`;
const FILE_OF_KEYS = `a readable file of keys, one per line, ${KEY_FORM}`;

describe.each(keySettingNames)('%s', (name) => {
  const inFile = async (text: string | Uint8Array) => {
    const { path, put } = await useTemporaryDirectory();
    await put('keys', text);
    return { [`${name}_FILE`]: join(path, 'keys') };
  };

  test('reads keys from a variable or a file', async () => {
    const keysOf = (given: Readonly<Record<string, string>>) => readConfig(given).secrets;
    for (const text of [`${key},${former}`, ` ${key} , ${former} `]) {
      expect(keysOf({ [name]: text })).toEqual([key, former]);
    }
    for (const text of [`${key}\n${former}`, `\ufeff${key}\r\n\r\n${former}\r\n`]) {
      expect(keysOf(await inFile(text))).toEqual([key, former]);
    }
    expect(keysOf(await inFile(`${key},x\n`))).toEqual([`${key},x`]);
  });

  test('accepts a key in base64, padded or not', async () => {
    const bytes = Buffer.from('fbfffe'.repeat(11), 'hex').subarray(0, 32);
    const padded = bytes.toString('base64');
    expect(padded).toMatch(/\+.*\/.*=$/);
    const signed = createHmac('sha256', bytes).update('text').digest('hex');
    const unpadded = padded.replace('=', '');
    for (const text of [padded, unpadded].map((each) => `base64:${each}`)) {
      for (const given of [{ [name]: `${text},${key}` }, await inFile(`${text}\r\n${key}\n`)]) {
        const { external, attachments, relay, secrets } = readConfig(given);
        const keys = external?.keys ?? attachments.signing?.keys ?? relay?.keys;
        expect([keys?.sign('text', 'hex'), secrets]).toEqual([signed, [unpadded, key]]);
      }
    }
  });

  test.each([
    ['a byte too few', Buffer.alloc(31).toString('base64')],
    ['nothing', ''],
    ['padding alone', '='],
    ['half of the padding', `${'A'.repeat(46)}=`],
    ['padding of nothing', `${'A'.repeat(48)}====`],
    ['more than its padding', `${'A'.repeat(43)}==`],
    ['a character too many', 'A'.repeat(45)],
    ['unused bits that are not zero', `${'A'.repeat(42)}B=`],
    ['the alphabet of URLs', `${'-_'.repeat(24)}`],
    ['a space in it', `${'A'.repeat(24)} ${'A'.repeat(24)}`],
    ['hexadecimal digits with another character', `${'a'.repeat(63)}!`],
  ])('rejects base64 that is %s without showing it', async (_, text) => {
    expect([
      ...faultsOf({ [name]: `${key},base64:${text}` }),
      ...faultsOf(await inFile(`base64:${text}`)),
    ]).toEqual([`${name}: expected ${KEYS}`, `${name}_FILE: expected ${FILE_OF_KEYS}`]);
  });

  test('rejects a file of short keys, without keys, not in UTF-8, or in addition to the variable', async () => {
    for (const text of ['short\n', '\n\n', Buffer.alloc(64, 0xff)]) {
      expect(faultsOf(await inFile(text))).toEqual([`${name}_FILE: expected ${FILE_OF_KEYS}`]);
    }
    expect(faultsOf({ [name]: key, ...(await inFile(former)) })).toEqual([
      `${name}_FILE: expected nothing, since ${name} is set but received ***`,
    ]);
  });
});

describe('originals and renderings', () => {
  test.each([
    ['into the results', 'link', 'pool/results', 'link', false],
    ['to the directory of unfinished results', 'link', 'pool/incoming', 'link', false],
    ['to the directory itself', 'link', 'pool', 'link', false],
    ['to its parent directory', 'link', '.', 'link', false],
    ['to another directory of it', 'link', 'pool/other', 'link', false],
    ['from within it', 'pool/results', 'originals', 'originals', false],
    ['from the directory of unfinished results', 'pool/incoming', 'originals', 'originals', false],
    ['next to it', 'link', 'originals', 'link', true],
  ])('are compared after resolving links: %s', async (_, link, target, originals, isRight) => {
    const { path } = await useTemporaryDirectory();
    for (const name of ['originals', 'pool', target]) {
      mkdirSync(join(path, name), { recursive: true });
    }
    symlinkSync(join(path, target), join(path, link));
    const [STORAGE_DIR, RESULT_STORE_DIR] = [join(path, originals), join(path, 'pool')];
    const faults = faultsOf({ STORAGE_DIR, RESULT_STORE: 'filesystem', RESULT_STORE_DIR });
    expect(faults.map((it) => it.split(':')[0])).toEqual(isRight ? [] : ['RESULT_STORE_DIR']);
  });

  test.each([
    ['', '', false],
    ['', 'avatars', false],
    ['', 'avatars/1', false],
    ['media', '', false],
    ['media', 'media', false],
    ['media', 'media/emojis', false],
    ['media/here', 'media', false],
    ['', 'renderings', true],
    ['media', 'renderings', true],
    ['media', 'media/renderings', true],
    ['media', 'media2', true],
    ['', 'themes', true],
    ['', 'themes', false, 'fluxer'],
  ])(
    'can have the prefixes "%s" and "%s" in one bucket: %s',
    (S3_PREFIX, RESULT_S3_PREFIX, isRight, COMPATIBILITY = 'none') => {
      const bucket = { STORAGE: 's3', S3_BUCKET: 'b', RESULT_STORE: 's3', COMPATIBILITY };
      const given = { ...bucket, S3_PREFIX, RESULT_S3_PREFIX };
      const names = faultsOf({ ...given, RESULT_S3_BUCKET: 'b' }).map((it) => it.split(':')[0]);
      expect(names).toEqual(isRight ? [] : ['RESULT_S3_PREFIX']);
      expect(faultsOf({ ...given, RESULT_S3_BUCKET: 'another' })).toEqual([]);
    },
  );
});
