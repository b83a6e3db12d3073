import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { planConnections, readOpenFilesLimit } from '../../src/config/connection-budget.ts';
import { countCores } from '../../src/config/cpu-cores.ts';
import { faultsOf } from '../support/setting-faults.ts';

describe('the configuration', () => {
  test('has the defaults of the contract with nothing set', () => {
    const config = readConfig({});
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 3000 });
    expect(config.storage).toEqual({
      kind: 'filesystem',
      folder: resolve('fixtures/originals'),
      isSample: true,
    });
    expect(config.originLimits).toEqual({
      firstByteTimeoutMs: 5_000,
      wholeBodyTimeoutMs: 30_000,
      maxOriginalBytes: 52_428_800,
    });
    expect(config.renderLimits).toEqual({
      maxInputPixels: 100_000_000,
      maxFrames: 1_024,
      maxResultBytes: 104_857_600,
      timeoutMs: 15_000,
    });
    expect(config.originReads).toEqual({ slots: 64, maxWaiting: 1_024, maxWaitMs: 5_000 });
    expect(config.originStreams).toEqual({ slots: 256, maxWaiting: 1_024, maxWaitMs: 5_000 });
    expect(config.originalsMemoryBytes).toBe(536_870_912);
    expect(config.renderer).toMatchObject({ memoryBytes: 2_684_354_560 });
    expect(config.admission).toEqual({
      slots: config.renderer.workers,
      maxWaitingPerSlot: 64,
      maxWaitMs: 5_000,
    });
    expect(config.cache).toEqual({ maxBytes: 268_435_456, originalBytes: 67_108_864 });
    expect(config.versions).toEqual({ freshForMs: 300_000, goneForMs: 30_000 });
    expect(config.http.maxAgeSeconds).toEqual({
      media: 31_536_000,
      defaultAvatar: 86_400,
      notFound: 30,
      refused: 300,
    });
    expect(config.shutdown.graceMs).toBe(20_000);
    expect(config.log.level).toBe('info');
  });

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
  ])('with %j alone the explorer is on: %s; elsewhere it has to be asked for', (given, isOn) => {
    expect(readConfig(given).explorer).toEqual({ isOn, isExposed: false });
    const isExposed = !isOn && !('STORAGE' in given || 'EXPLORER' in given);
    expect(readConfig({ ...given, EXPLORER: 'on' }).explorer).toEqual({ isOn: true, isExposed });
  });

  test('serves no samples in production', () => {
    expect(faultsOf({ NODE_ENV: 'production' })).toEqual([
      'STORAGE_DIR: expected an existing folder, since NODE_ENV is production but received nothing',
    ]);
    const bucket = { STORAGE: 's3', S3_BUCKET: 'b' };
    for (const given of [{ STORAGE_DIR: 'src' }, bucket]) {
      expect(faultsOf({ NODE_ENV: 'production', ...given })).toEqual([]);
    }
  });

  test('takes an empty variable for one that is not set', () => {
    expect(readConfig({ PORT: '', WORKERS: '' }).listen.port).toBe(3000);
  });

  test('reports every fault at once, with name, expected form and the value received', () => {
    expect(
      faultsOf({
        PORT: '65536',
        WORKERS: '0',
        LOG_LEVEL: 'loud',
        STORAGE: 'floppy',
        STORAGE_DIR: '/nowhere',
        TRUST_PROXY: '10.0.0.0/33',
        TLS_KEY_FILE: 'package.json',
      }),
    ).toEqual([
      'PORT: expected an integer from 0 to 65535 but received "65536"',
      'TRUST_PROXY: expected true, false, or a comma-separated list of addresses or networks but received "10.0.0.0/33"',
      'LOG_LEVEL: expected one of fatal, error, warn, info, debug, trace, silent but received "loud"',
      'STORAGE: expected filesystem or s3 but received "floppy"',
      'WORKERS: expected an integer from 1 to 1024 (processes) but received "0"',
      'TLS_CERT_FILE: expected a file, since the other half of the pair is set but received nothing',
      'STORAGE_DIR: expected an existing folder but received "/nowhere"',
    ]);
  });

  test('asks for memory for two of the largest originals', () => {
    expect(faultsOf({ MAX_ORIGINAL_BYTES: '1000', ORIGINALS_MEMORY_BYTES: '1999' })).toEqual([
      'ORIGINALS_MEMORY_BYTES: expected at least twice MAX_ORIGINAL_BYTES but received "1999"',
    ]);
    expect(faultsOf({ MAX_ORIGINAL_BYTES: '1000', ORIGINALS_MEMORY_BYTES: '2000' })).toEqual([]);
  });

  test('asks for workers that have room for the largest original', () => {
    const gibibyte = 2 ** 30;
    const settings = {
      MAX_ORIGINAL_BYTES: String(gibibyte),
      ORIGINALS_MEMORY_BYTES: String(2 * gibibyte),
    };
    const least = gibibyte + 160 * 2 ** 20;
    expect(faultsOf({ ...settings, WORKER_MEMORY_BYTES: String(least) })).toEqual([]);
    expect(faultsOf({ ...settings, WORKER_MEMORY_BYTES: String(least - 1) })).toEqual([
      `WORKER_MEMORY_BYTES: expected at least 160 MiB more than MAX_ORIGINAL_BYTES but received "${least - 1}"`,
    ]);
    expect(faultsOf({ WORKER_MEMORY_BYTES: String(256 * 2 ** 20) })).toEqual([]);
  });

  test.each([
    ['1', { light: 1, heavy: 1 }],
    ['2', { light: 1, heavy: 1 }],
    ['3', { light: 2, heavy: 1 }],
    ['8', { light: 4, heavy: 4 }],
  ])('divides WORKERS=%s between the lanes', (WORKERS, lanes) => {
    expect(readConfig({ WORKERS }).renderer.workers).toEqual(lanes);
  });

  test('has the defaults of the contract for a bucket', () => {
    const { storage } = readConfig({ STORAGE: 's3', S3_BUCKET: 'originals' });
    expect(storage).toEqual({
      kind: 's3',
      bucket: 'originals',
      prefix: '',
      region: 'us-east-1',
      endpoint: undefined,
      forcePathStyle: false,
      maxConnections: 64 + 256,
      connectTimeoutMs: 2_000,
    });
  });

  test('keeps renderings nowhere unless it is told to, then where it is told', () => {
    expect(readConfig({}).resultStore).toBeUndefined();
    expect(readConfig({ RESULT_STORE: 'filesystem', RESULT_STORE_DIR: 'src' }).resultStore).toEqual(
      { kind: 'filesystem', folder: 'src', maxBytes: 10_737_418_240 },
    );
    const server = { S3_ENDPOINT: 'http://127.0.0.1:9000', S3_REGION: 'here' };
    const given = { ...server, RESULT_STORE: 's3', RESULT_S3_BUCKET: 'renderings' };
    expect(readConfig(given).resultStore).toEqual({
      kind: 's3',
      bucket: 'renderings',
      prefix: '',
      region: 'here',
      endpoint: 'http://127.0.0.1:9000',
      forcePathStyle: true,
      maxConnections: 64,
      connectTimeoutMs: 2_000,
      timeoutMs: 10_000,
      maxObjectBytes: 104_857_600,
    });
  });

  test('asks for what a store of renderings needs', () => {
    expect(faultsOf({ RESULT_STORE: 'filesystem' })).toEqual([
      'RESULT_STORE_DIR: expected an existing folder, since RESULT_STORE is filesystem but received nothing',
    ]);
    expect(faultsOf({ RESULT_STORE: 's3' })).toEqual([
      'RESULT_S3_BUCKET: expected the name of a bucket, since RESULT_STORE is s3 but received nothing',
    ]);
  });

  test.each([
    ['test', 'test', false],
    ['test', 'test/support', false],
    ['test/support', 'test', false],
    ['test/http', 'test/support', true],
  ])(
    'with originals in %s, renderings may be in %s: %s',
    (STORAGE_DIR, RESULT_STORE_DIR, isAllowed) => {
      const faults = faultsOf({ STORAGE_DIR, RESULT_STORE: 'filesystem', RESULT_STORE_DIR });
      expect(faults.map((fault) => fault.split(':')[0])).toEqual(
        isAllowed ? [] : ['RESULT_STORE_DIR'],
      );
    },
  );

  test.each([
    ['a link into the results', 'pool/results', 'originals-link', 'pool', false],
    ['a link to where results are written', 'pool/incoming', 'originals-link', 'pool', false],
    ['a link to the folder itself', 'pool', 'originals-link', 'pool', false],
    ['a link to what is above it', '.', 'originals-link', 'pool', false],
    ['a link from within it', 'originals', 'originals', 'pool', false, 'pool/results'],
    ['a link beside it', 'originals', 'originals-link', 'pool', true],
  ])('takes links for what they lead to: %s', (...row) => {
    const [, target, originals, results, isAllowed, link = 'originals-link'] = row;
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-config-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ['originals', 'pool']) mkdirSync(join(folder, name));
    if (link === 'originals-link') mkdirSync(join(folder, target), { recursive: true });
    symlinkSync(join(folder, target), join(folder, link));
    const faults = faultsOf({
      STORAGE_DIR: join(folder, originals),
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: join(folder, results),
    });
    expect(faults.map((fault) => fault.split(':')[0])).toEqual(
      isAllowed ? [] : ['RESULT_STORE_DIR'],
    );
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
  ])('with originals under "%s", renderings may be under "%s" of one bucket: %s', (...row) => {
    const [S3_PREFIX, RESULT_S3_PREFIX, isAllowed] = row;
    const given = {
      STORAGE: 's3',
      S3_BUCKET: 'b',
      RESULT_STORE: 's3',
      S3_PREFIX,
      RESULT_S3_PREFIX,
    };
    const faults = faultsOf({ ...given, RESULT_S3_BUCKET: 'b' });
    expect(faults.map((fault) => fault.split(':')[0])).toEqual(
      isAllowed ? [] : ['RESULT_S3_PREFIX'],
    );
    expect(faultsOf({ ...given, RESULT_S3_BUCKET: 'another' })).toEqual([]);
  });

  test('has an admin listener where there is a port, and wants a token for it', () => {
    expect(readConfig({}).admin).toBeUndefined();
    expect(readConfig({ ADMIN_TOKEN: 'a-token-of-the-tests' }).admin).toBeUndefined();
    expect(readConfig({ ADMIN_PORT: '9090', ADMIN_TOKEN: 'a-token-of-the-tests' }).admin).toEqual({
      listen: { host: '127.0.0.1', port: 9_090 },
      token: 'a-token-of-the-tests',
    });
    expect(faultsOf({ ADMIN_PORT: '9090' })).toEqual([
      'ADMIN_TOKEN: expected a token, since ADMIN_PORT is set but received nothing',
    ]);
    expect(faultsOf({ ADMIN_PORT: '9090', ADMIN_TOKEN: 'short' })).toEqual([
      'ADMIN_TOKEN: expected at least 16 characters of A-Z a-z 0-9 . _ ~ + / = - but received ***',
    ]);
  });

  test('puts the bucket into the path where the server is not AWS', () => {
    const given = { STORAGE: 's3', S3_BUCKET: 'originals', S3_ENDPOINT: 'http://[::1]:9000' };
    expect(readConfig(given).storage).toMatchObject({
      endpoint: 'http://[::1]:9000',
      forcePathStyle: true,
    });
    expect(readConfig({ ...given, S3_FORCE_PATH_STYLE: 'false' }).storage).toMatchObject({
      forcePathStyle: false,
    });
  });

  test.each([
    ['media', 'media/'],
    ['media/', 'media/'],
    ['a/b c/ü', 'a/b c/ü/'],
  ])('reads S3_PREFIX=%s', (value, prefix) => {
    const { storage } = readConfig({ STORAGE: 's3', S3_BUCKET: 'b', S3_PREFIX: value });
    expect(storage).toMatchObject({ prefix });
  });

  test('asks for a folder only where the storage is one, for a bucket only where it is not', () => {
    expect(faultsOf({ STORAGE: 's3', S3_BUCKET: 'b', STORAGE_DIR: '/nowhere' })).toEqual([]);
    expect(faultsOf({ STORAGE: 's3', STORAGE_DIR: '/nowhere' })).toEqual([
      'S3_BUCKET: expected the name of a bucket, since STORAGE is s3 but received nothing',
    ]);
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
    ['ORIGIN_MAX_READS', '0'],
    ['ORIGIN_MAX_STREAMS', '0'],
  ])('refuses %s=%s', (name, value) => {
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
    const faults = faultsOf({ [name]: value }).filter((fault) => fault.startsWith(`${name}:`));
    expect(faults).toEqual([expect.stringMatching(/^\w+: expected .+ but received /)]);
    expect(faults[0]?.split(' but received ')[1]).toBe(shown);
  });

  test.each(['1.5', '-1', '1e3', ' 5', '0x10', 'NaN', '99999999999999999999'])(
    'refuses %j where an integer belongs',
    (value) => {
      expect(faultsOf({ MAX_FRAMES: value })).toHaveLength(1);
    },
  );

  test.each([
    ['true', true],
    ['false', false],
    ['127.0.0.1, 10.0.0.0/8,::1', ['127.0.0.1', '10.0.0.0/8', '::1']],
  ])('reads TRUST_PROXY=%s', (value, expected) => {
    expect(readConfig({ TRUST_PROXY: value }).http.trustProxy).toEqual(expected);
  });

  test('refuses a certificate and a key that are none, and a host that cannot be', () => {
    const [tls, ...others] = faultsOf({
      TLS_CERT_FILE: 'package.json',
      TLS_KEY_FILE: 'fixtures/tls/key.pem',
    });
    expect(tls).toMatch(
      /^TLS_CERT_FILE: expected a certificate with its key \(error:.*\) but received "package.json"$/,
    );
    expect(others).toEqual([]);
    for (const HOST of ['999.1.1.1', 'not a host']) {
      expect(faultsOf({ HOST })).toEqual([
        `HOST: expected an IP address or a host name but received "${HOST}"`,
      ]);
    }
    for (const HOST of ['::1', '0.0.0.0', 'localhost']) expect(faultsOf({ HOST })).toEqual([]);
  });

  test('has as many connections as the limit of open files has room for', () => {
    const { most, byDefault } = planConnections(2 * (countCores() + 1) + 64 + 256);
    expect(readConfig({}).http.maxConnections).toBe(byDefault);
    expect(readConfig({ MAX_CONNECTIONS: '2' }).http.maxConnections).toBe(2);
    expect(faultsOf({ MAX_CONNECTIONS: '0' })).toHaveLength(1);
    if (most >= 1_000_000) return; // no limit to speak of
    expect(faultsOf({ MAX_CONNECTIONS: String(most + 1), PORT: 'x' })).toEqual([
      expect.stringMatching(/^PORT: /),
      `MAX_CONNECTIONS: expected at most ${most}, for the limit of open files but received "${most + 1}"`,
    ]);
  });

  test('hands no secret to the workers', () => {
    const { environment } = readConfig({ AWS_SECRET_ACCESS_KEY: 's', PATH: '/bin' }).renderer;
    expect(environment).toEqual({ PATH: '/bin' });
  });
});

describe('the cores', () => {
  const files = (content: Record<string, string>) => (path: string) => {
    const text = content[path];
    if (text === undefined) throw new Error('no such file');
    return text;
  };

  test('are limited by the quota of a container', () => {
    expect(countCores(files({ '/sys/fs/cgroup/cpu.max': '50000 100000\n' }))).toBe(1);
    expect(
      countCores(
        files({
          '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '100000\n',
          '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
        }),
      ),
    ).toBe(1);
  });

  test('are all there without a quota', () => {
    const all = countCores(files({}));
    expect(all).toBeGreaterThanOrEqual(1);
    expect(countCores(files({ '/sys/fs/cgroup/cpu.max': 'max 100000\n' }))).toBe(all);
    expect(
      countCores(
        files({
          '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
          '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
        }),
      ),
    ).toBe(all);
  });
});

describe('the connections', () => {
  const limits = (line: string) => () => `Limit  Soft Limit  Hard Limit  Units\n${line}\n`;

  test.each([
    ['Max open files            1024                 524288               files', 1_024],
    ['Max open files            unlimited            unlimited            files', Infinity],
    ['Max processes             1024                 524288               processes', undefined],
  ])('know the limit of open files: %s', (line, expected) => {
    expect(readOpenFilesLimit(limits(line))).toBe(expected);
  });

  test('know none where the system does not tell', () => {
    const readNothing = (): string => {
      throw new Error('no such file');
    };
    expect(readOpenFilesLimit(readNothing)).toBeUndefined();
  });

  test.each([
    [256, 6],
    [1_024, 6],
    [20_000, 70],
    [1_048_576, 6],
  ])('leave room, of %i files, for %i others', (limit, others) => {
    const { byDefault, most } = planConnections(others, limit);
    expect(most + others).toBeLessThan(limit - 100);
    expect(most + others).toBeGreaterThan(limit - 140);
    expect(byDefault).toBe(Math.min(most, 16_384));
  });

  test('are few where nearly no file may be open, but are', () => {
    expect(planConnections(50, 100)).toEqual({ byDefault: 2, most: 2 });
  });
});
