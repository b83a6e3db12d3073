import { mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { countCores, planConnections } from '../../src/config/machine-limits.ts';
import { faultsOf } from '../support/setting-faults.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const MEBIBYTE = 2 ** 20;
const key = 'an-example-key-of-thirty-two-bytes-or-more';
const bucket = { STORAGE: 's3', S3_BUCKET: 'b' };
const server = { S3_ENDPOINT: 'http://[::1]:9000', S3_REGION: 'here' };
const admin = { ADMIN_PORT: '9090', ADMIN_TOKEN: 'a-token-of-the-tests' };

test('the configuration has the defaults of the contract with nothing set', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    listen: { host: '127.0.0.1', port: 3000 },
    storage: { kind: 'filesystem', folder: resolve('fixtures/originals'), isSample: true },
    resultStore: undefined,
    admin: undefined,
    originLimits: {
      firstByteTimeoutMs: 5_000,
      wholeBodyTimeoutMs: 30_000,
      maxOriginalBytes: 50 * MEBIBYTE,
    },
    renderLimits: {
      maxInputPixels: 100_000_000,
      maxFrames: 1_024,
      maxResultBytes: 100 * MEBIBYTE,
      timeoutMs: 15_000,
    },
    originReads: { slots: 64, maxWaiting: 1_024, maxWaitMs: 5_000 },
    originStreams: { slots: 256, maxWaiting: 1_024, maxWaitMs: 5_000 },
    originalsMemoryBytes: 512 * MEBIBYTE,
    renderer: { memoryBytes: { light: 338 * MEBIBYTE, heavy: 2_222 * MEBIBYTE } },
    admission: { maxWaitingPerSlot: 64, maxWaitMs: 5_000 },
    cache: { maxBytes: 256 * MEBIBYTE, originalBytes: 64 * MEBIBYTE },
    versions: { freshForMs: 300_000, goneForMs: 30_000 },
    http: {
      maxAgeSeconds: { media: 31_536_000, defaultAvatar: 86_400, notFound: 30, refused: 300 },
    },
    shutdown: { graceMs: 20_000 },
    log: { level: 'info' },
  });
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
    [{ STORAGE: 's3', S3_BUCKET: 'originals' }, false],
    [{ EXPLORER: 'off' }, false],
    // Where URLs are guarded, a page must not show what is behind them.
    [{ EXTERNAL_SIGNING_KEYS: key }, false],
    [{ ATTACHMENT_SIGNING_KEYS: key }, false],
    [{ RELAY_SIGNING_KEYS: key }, false],
  ])('is on with %j alone: %s; elsewhere it has to be asked for', (given, isOn) => {
    expect(readConfig(given).explorer).toEqual({ isOn, isExposed: false });
    const isExposed = !isOn && ('HOST' in given || 'NODE_ENV' in given);
    expect(readConfig({ ...given, EXPLORER: 'on' }).explorer).toEqual({ isOn: true, isExposed });
  });
});

describe('a setting', () => {
  /** What is set, and a part of the configuration that follows from it. */
  const readings: readonly (readonly [Readonly<Record<string, string>>, object])[] = [
    [{ PORT: '', WORKERS: '' }, { listen: { port: 3000 } }],
    [{ TRUST_PROXY: 'true' }, { http: { trustProxy: true } }],
    [{ TRUST_PROXY: 'false' }, { http: { trustProxy: false } }],
    [
      { TRUST_PROXY: '127.0.0.1, 10.0.0.0/8,::1' },
      { http: { trustProxy: ['127.0.0.1', '10.0.0.0/8', '::1'] } },
    ],
    [{ WORKERS: '1' }, { renderer: { workers: { light: 1, heavy: 1 } } }],
    [{ WORKERS: '2' }, { renderer: { workers: { light: 2, heavy: 2 } } }],
    [{ WORKERS: '3' }, { renderer: { workers: { light: 3, heavy: 3 } } }],
    [{ WORKERS: '8' }, { renderer: { workers: { light: 8, heavy: 8 } } }],
    // Too little memory for two processes on each core.
    [
      { WORKERS: '5', WORKER_MEMORY_BYTES: String(600 * MEBIBYTE) },
      {
        renderer: {
          workers: { light: 3, heavy: 2 },
          memoryBytes: { light: 600 * MEBIBYTE, heavy: 600 * MEBIBYTE },
        },
      },
    ],
    [{ MAX_CONNECTIONS: '2' }, { http: { maxConnections: 2 } }],
    [
      bucket,
      {
        storage: {
          kind: 's3',
          bucket: 'b',
          prefix: '',
          region: 'us-east-1',
          endpoint: undefined,
          forcePathStyle: false,
          maxConnections: 64 + 256,
          connectTimeoutMs: 2_000,
        },
      },
    ],
    [{ ...bucket, S3_PREFIX: 'media' }, { storage: { prefix: 'media/' } }],
    [{ ...bucket, S3_PREFIX: 'media/' }, { storage: { prefix: 'media/' } }],
    [{ ...bucket, S3_PREFIX: 'a/b c/ü' }, { storage: { prefix: 'a/b c/ü/' } }],
    // The bucket's name is in the path where the server is not AWS.
    [
      { ...bucket, ...server },
      { storage: { endpoint: 'http://[::1]:9000', forcePathStyle: true, region: 'here' } },
    ],
    [
      { ...bucket, ...server, S3_FORCE_PATH_STYLE: 'false' },
      { storage: { forcePathStyle: false } },
    ],
    [
      { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: 'src' },
      { resultStore: { kind: 'filesystem', folder: 'src', maxBytes: 10_240 * MEBIBYTE } },
    ],
    [
      { ...server, RESULT_STORE: 's3', RESULT_S3_BUCKET: 'renderings' },
      {
        resultStore: {
          kind: 's3',
          bucket: 'renderings',
          prefix: '',
          region: 'here',
          endpoint: 'http://[::1]:9000',
          forcePathStyle: true,
          maxConnections: 64,
          connectTimeoutMs: 2_000,
          timeoutMs: 10_000,
          maxObjectBytes: 100 * MEBIBYTE,
        },
      },
    ],
    [{ ADMIN_TOKEN: admin.ADMIN_TOKEN }, { admin: undefined }],
    [{}, { attachments: { mode: 'off', signing: undefined } }],
    [
      { ATTACHMENT_SIGNING_KEYS: key },
      {
        attachments: {
          mode: 'off',
          signing: { domain: 'attachment-url-v1', keys: { secrets: [key] } },
        },
      },
    ],
    [
      {
        ATTACHMENT_SIGNING: 'enforce',
        ATTACHMENT_SIGNING_DOMAIN: 'v7',
        ATTACHMENT_SIGNING_KEYS: key,
      },
      { attachments: { mode: 'enforce', signing: { domain: 'v7' } } },
    ],
    [admin, { admin: { listen: { host: '127.0.0.1', port: 9_090 }, token: admin.ADMIN_TOKEN } }],
  ];
  test.each(readings)('is read: %j', (given, expected) => {
    expect(readConfig(given)).toMatchObject(expected);
  });

  test('hands no secret to the workers', () => {
    const { environment } = readConfig({ AWS_SECRET_ACCESS_KEY: 's', PATH: '/bin' }).renderer;
    expect(environment).toEqual({ PATH: '/bin' });
  });

  /** What is set, and what is wrong with it: all of it, each with name, expected form and value. */
  const faults: readonly (readonly [Readonly<Record<string, string>>, readonly string[]])[] = [
    [
      {
        PORT: '65536',
        WORKERS: '0',
        LOG_LEVEL: 'loud',
        STORAGE: 'floppy',
        STORAGE_DIR: '/nowhere',
        TRUST_PROXY: '10.0.0.0/33',
        TLS_KEY_FILE: 'package.json',
      },
      [
        'PORT: expected an integer from 0 to 65535 but received "65536"',
        'TRUST_PROXY: expected true, false, or a comma-separated list of addresses or networks but received "10.0.0.0/33"',
        'LOG_LEVEL: expected one of fatal, error, warn, info, debug, trace, silent but received "loud"',
        'STORAGE: expected filesystem or s3 but received "floppy"',
        'WORKERS: expected an integer from 1 to 1024 (cores) but received "0"',
        'TLS_CERT_FILE: expected a file, since the other half of the pair is set but received nothing',
        'STORAGE_DIR: expected an existing folder but received "/nowhere"',
      ],
    ],
    [
      { NODE_ENV: 'production' },
      [
        'STORAGE_DIR: expected an existing folder, since NODE_ENV is production but received nothing',
      ],
    ],
    [{ NODE_ENV: 'production', STORAGE_DIR: 'src' }, []],
    [{ NODE_ENV: 'production', ...bucket }, []],
    [{ ...bucket, STORAGE_DIR: '/nowhere' }, []],
    [
      { STORAGE: 's3', STORAGE_DIR: '/nowhere' },
      ['S3_BUCKET: expected the name of a bucket, since STORAGE is s3 but received nothing'],
    ],
    [
      { MAX_ORIGINAL_BYTES: '1000', ORIGINALS_MEMORY_BYTES: '1999' },
      ['ORIGINALS_MEMORY_BYTES: expected at least twice MAX_ORIGINAL_BYTES but received "1999"'],
    ],
    [{ MAX_ORIGINAL_BYTES: '1000', ORIGINALS_MEMORY_BYTES: '2000' }, []],
    [{ MAX_ORIGINAL_BYTES: `${100 * MEBIBYTE}`, WORKER_MEMORY_BYTES: `${260 * MEBIBYTE}` }, []],
    [
      { MAX_ORIGINAL_BYTES: `${100 * MEBIBYTE}`, WORKER_MEMORY_BYTES: `${260 * MEBIBYTE - 1}` },
      [
        'WORKER_MEMORY_BYTES: expected at least 160 MiB more than MAX_ORIGINAL_BYTES but received "272629759"',
      ],
    ],
    [{ WORKER_MEMORY_BYTES: `${256 * MEBIBYTE}` }, []],
    [
      { RESULT_STORE: 'filesystem' },
      [
        'RESULT_STORE_DIR: expected an existing folder, since RESULT_STORE is filesystem but received nothing',
      ],
    ],
    [
      { RESULT_STORE: 's3' },
      [
        'RESULT_S3_BUCKET: expected the name of a bucket, since RESULT_STORE is s3 but received nothing',
      ],
    ],
    [
      { ADMIN_PORT: '9090' },
      ['ADMIN_TOKEN: expected a token, since ADMIN_PORT is set but received nothing'],
    ],
    [
      { ADMIN_PORT: '9090', ADMIN_TOKEN: 'short' },
      [
        'ADMIN_TOKEN: expected at least 16 characters of A-Z a-z 0-9 . _ ~ + / = - but received ***',
      ],
    ],
    ...['report', 'enforce'].map(
      (mode) =>
        [
          { ATTACHMENT_SIGNING: mode },
          [
            `ATTACHMENT_SIGNING_KEYS: expected a key, since ATTACHMENT_SIGNING is ${mode} but received nothing`,
          ],
        ] as const,
    ),
    [
      { ATTACHMENT_SIGNING: 'on' },
      ['ATTACHMENT_SIGNING: expected off or report or enforce but received "on"'],
    ],
    [
      { ATTACHMENT_SIGNING_DOMAIN: 'two\nlines' },
      [
        'ATTACHMENT_SIGNING_DOMAIN: expected a text of one line, 256 bytes at most but received ***',
      ],
    ],
    ...['999.1.1.1', 'not a host'].map(
      (HOST) =>
        [{ HOST }, [`HOST: expected an IP address or a host name but received "${HOST}"`]] as const,
    ),
    ...['::1', '0.0.0.0', 'localhost'].map((HOST) => [{ HOST }, []] as const),
  ];
  test.each(faults)('of %j is judged', (given, expected) => {
    expect(faultsOf(given)).toEqual(expected);
  });

  test.each([
    ['S3_BUCKET', 'a/b'],
    ['S3_REGION', 'eu central'],
    ['S3_FORCE_PATH_STYLE', 'yes'],
    ['S3_PREFIX', '/media'],
    ['S3_PREFIX', 'media//x'],
    ['S3_PREFIX', '../media'],
    ['S3_PREFIX', 'x'.repeat(513)],
    ['S3_ENDPOINT', 'minio:9000'],
    ['S3_ENDPOINT', 'ftp://minio'],
    ['S3_ENDPOINT', 'http://'],
    ['S3_ENDPOINT', 'http://minio/bucket'],
    ['S3_ENDPOINT', 'http://minio?a'],
    ['S3_ENDPOINT', 'http://@minio'],
    ['ORIGIN_MAX_READS', '0'],
    ['ORIGIN_MAX_STREAMS', '0'],
    ['MAX_CONNECTIONS', '0'],
    ...['1.5', '-1', '1e3', ' 5', '0x10', 'NaN', '99999999999999999999'].map(
      (value): [string, string] => ['MAX_FRAMES', value],
    ),
  ])('is refused: %s=%s', (name, value) => {
    expect(faultsOf({ [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${name}: expected .* but received "`)),
    ]);
  });

  test.each([
    ['S3_ENDPOINT', 'https://key:se@cr/et@s3.example.net', '"https://***@s3.example.net"'],
    ['S3_ENDPOINT', 'key:secret@s3.example.net', '"***@s3.example.net"'],
    ['S3_ENDPOINT', 'key://secret@s3.example.net', '"***@s3.example.net"'],
    ['TLS_KEY_FILE', '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n', '***'],
    ['TLS_KEY_FILE', '-----BEGIN PRIVATE KEY-----\\nc2VjcmV0', '***'],
    ['TLS_KEY_FILE', 'c2VjcmV0\nc2VjcmV0', '***'],
    ['TLS_KEY_FILE', 'c2VjcmV0\rc2VjcmV0', '***'],
    ['STORAGE_DIR', '/no/such/folder', '"/no/such/folder"'],
  ])('shows no secret that stands in the wrong place: %s=%j', (name, value, shown) => {
    const [fault = '', ...others] = faultsOf({ [name]: value }).filter((line) =>
      line.startsWith(`${name}:`),
    );
    expect(others).toEqual([]);
    expect(fault).toMatch(/^\w+: expected .+ but received /);
    expect(fault.split(' but received ')[1]).toBe(shown);
  });

  test('names a certificate and a key that do not belong together', () => {
    const files = { TLS_CERT_FILE: 'package.json', TLS_KEY_FILE: 'fixtures/tls/key.pem' };
    expect(faultsOf(files)).toEqual([
      expect.stringMatching(
        /^TLS_CERT_FILE: expected a certificate with its key \(error:.*\) but received "package.json"$/,
      ),
    ]);
  });

  test('allows as many connections as the limit of open files has room for', () => {
    const { most, byDefault } = planConnections(2 * 2 * countCores() + 64 + 256);
    expect(readConfig({}).http.maxConnections).toBe(byDefault);
    if (most >= 1_000_000) return; // no limit to speak of
    expect(faultsOf({ MAX_CONNECTIONS: String(most + 1), PORT: 'x' })).toEqual([
      expect.stringMatching(/^PORT: /),
      `MAX_CONNECTIONS: expected at most ${most}, for the limit of open files but received "${most + 1}"`,
    ]);
  });
});

describe('originals and renderings', () => {
  /** Whether renderings may be in a folder beside originals in another. */
  const isAllowed = (STORAGE_DIR: string, RESULT_STORE_DIR: string): boolean => {
    const faults = faultsOf({ STORAGE_DIR, RESULT_STORE: 'filesystem', RESULT_STORE_DIR });
    expect(faults.filter((fault) => !fault.startsWith('RESULT_STORE_DIR:'))).toEqual([]);
    return faults.length === 0;
  };

  test.each([
    ['test', 'test', false],
    ['test', 'test/support', false],
    ['test/support', 'test', false],
    ['test/http', 'test/support', true],
  ])('may be in %s and %s: %s', (originals, results, isRight) => {
    expect(isAllowed(originals, results)).toBe(isRight);
  });

  test.each([
    ['into the results', 'link', 'pool/results', 'link', false],
    ['to where results are written', 'link', 'pool/incoming', 'link', false],
    ['to the folder itself', 'link', 'pool', 'link', false],
    ['to what is above it', 'link', '.', 'link', false],
    ['from within it', 'pool/results', 'originals', 'originals', false],
    ['beside it', 'link', 'originals', 'link', true],
  ])('are where a link leads: %s', async (_, link, target, originals, isRight) => {
    const { path } = await useTemporaryFolder();
    for (const name of ['originals', 'pool', target]) {
      mkdirSync(join(path, name), { recursive: true });
    }
    symlinkSync(join(path, target), join(path, link));
    expect(isAllowed(join(path, originals), join(path, 'pool'))).toBe(isRight);
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
  ])('may be under "%s" and "%s" of one bucket: %s', (S3_PREFIX, RESULT_S3_PREFIX, isRight) => {
    const given = { ...bucket, RESULT_STORE: 's3', S3_PREFIX, RESULT_S3_PREFIX };
    const names = faultsOf({ ...given, RESULT_S3_BUCKET: 'b' }).map((it) => it.split(':')[0]);
    expect(names).toEqual(isRight ? [] : ['RESULT_S3_PREFIX']);
    expect(faultsOf({ ...given, RESULT_S3_BUCKET: 'another' })).toEqual([]);
  });
});
