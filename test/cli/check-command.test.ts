import { chmodSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../support/s3/local-s3.ts';
import {
  respondWithError,
  type ScriptedAnswer,
  startScriptedS3,
} from '../support/s3/scripted-s3.ts';
import { useDnsServer } from '../support/sites/dns-server.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../support/temporary-folder.ts';

async function check(environment: Record<string, string>) {
  const { status, stdout, stderr } = await runDarkroom(['check'], { environment });
  expect(stderr).toBe('');
  const text = stdout.toString();
  expect(text).not.toMatch(/hush|S3RVER/);
  return { status, text, lines: text.trimEnd().split('\n') };
}

const subjects = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/^(\w+) +([\w ]+): .*$/s, '$1 $2'));

describe('darkroom check', () => {
  let folder: TemporaryFolder;
  beforeEach(async () => {
    folder = await useTemporaryFolder();
  });

  test('finds no fault in the samples', async () => {
    const { status, text, lines } = await check({});
    expect(status).toBe(0);
    expect(subjects(lines)).toEqual(
      [
        'settings',
        'storage',
        'missing original',
        'listing',
        'reading',
        'renderings',
        'workers',
      ].map((subject) => `ok ${subject}`),
    );
    expect(text).toMatch(/workers: start; the service has \d+ \(network: /);
  });

  test('counts the keys of attachments and uploads', async () => {
    const { status, lines } = await check({
      ATTACHMENT_SIGNING: 'report',
      ATTACHMENT_SIGNING_KEYS: 'hush-the-first-key-is-a-secret-too',
      RELAY_SIGNING_KEYS: 'hush-the-first-key-is-a-secret-too,hush-the-second-key-is-a-secret-too',
    });
    expect(status).toBe(0);
    expect(lines.filter((line) => line.includes(' keys: '))).toEqual([
      'ok     attachment keys: the first signs (ATTACHMENT_SIGNING=report)',
      'ok     upload keys: any of 2 verifies',
    ]);
  });

  describe('where there are external media', () => {
    const keys = 'hush-the-first-key-is-a-secret-too,hush-the-second-key-is-a-secret-too';
    const names = {
      'example.com': ['203.0.114.7', '2a00::7'],
      'media.example.org': ['203.0.114.8'],
      'inside.example.org': ['203.0.114.9', '10.1.2.3'],
    };
    const findings = async (environment: Record<string, string>) => {
      const { address } = await useDnsServer(names);
      const settings = { EXTERNAL_SIGNING_KEYS: keys, EXTERNAL_DNS_SERVERS: address };
      const { status, lines } = await check({ ...settings, ...environment });
      return { address, status, lines: lines.filter((line) => line.includes('external ')) };
    };

    test('counts the keys, and resolves a name', async () => {
      expect(await findings({})).toMatchObject({
        status: 0,
        lines: [
          'ok     external keys: the first signs; 1 more verify',
          'ok     external lookup: example.com has 203.0.114.7, 2a00::7',
        ],
      });
    });

    test('resolves the name of a site that may be asked', async () => {
      const { lines } = await findings({ EXTERNAL_ALLOWED_HOSTS: 'org,media.example.org' });
      expect(lines[1]).toBe('ok     external lookup: media.example.org has 203.0.114.8');
    });

    test('finds a resolver that gives addresses inside', async () => {
      expect(await findings({ EXTERNAL_ALLOWED_HOSTS: 'inside.example.org' })).toMatchObject({
        status: 1,
        lines: [
          expect.anything(),
          'FAULT  external lookup: inside.example.org has the address 10.1.2.3, which must not be connected to (private)',
        ],
      });
    });

    test('finds names that are not resolved', async () => {
      const { address, status, lines } = await findings({ EXTERNAL_ALLOWED_HOSTS: 'a.example' });
      expect(status).toBe(1);
      expect(lines[1]).toContain(`a.example is not resolved by ${address}, so nothing`);
      expect(lines[1]).toContain('ENOTFOUND');
    });
  });

  test('shows all faults of the settings, and no secret', async () => {
    const { status, text, lines } = await check({
      PORT: 'many',
      ADMIN_PORT: '9090',
      ADMIN_TOKEN: 'hush-hush',
      S3_ENDPOINT: 'http://me:hush-hush@s3.example',
    });
    expect(status).toBe(78);
    expect(subjects(lines)).toEqual(Array.from({ length: 3 }, () => 'FAULT settings'));
    for (const name of ['PORT', 'ADMIN_TOKEN', 'S3_ENDPOINT']) {
      expect(text).toContain(`settings: ${name}: expected `);
    }
  });

  test('names the settings that are set without their values, and warns of one that is none', async () => {
    const token = 'hush-hush-hush-hush';
    const given = { WORKERS: '2', ADMIN_PORT: '1', ADMIN_TOKEN: token, STORAGE_DIRR: 'hush' };
    const { status, lines } = await check(given);
    expect([status, ...lines.slice(0, 2)]).toEqual([
      0,
      'ok     settings: valid: WORKERS, ADMIN_PORT, ADMIN_TOKEN',
      'WARN   settings: STORAGE_DIRR is no setting of Darkroom; is STORAGE_DIR meant?',
    ]);
  });

  test('of a folder that is empty, all is well; of one laid out otherwise, not', async () => {
    const empty = await check({ STORAGE_DIR: folder.path });
    expect([empty.status, empty.lines[3]]).toEqual([0, 'ok     listing: nothing is there yet']);
    await folder.put('originals/avatars/1/ab12', 'x');
    const { status, lines } = await check({ STORAGE_DIR: folder.path });
    expect([status, lines[3]]).toEqual([
      1,
      'FAULT  listing: none of 1 files has the key of an original; the first is "originals/avatars/1/ab12". Is STORAGE_DIR right?',
    ]);
  });

  test.skipIf(process.getuid?.() === 0)('shows a folder that must not be read', async () => {
    chmodSync(folder.path, 0o000);
    onTestFinished(() => chmodSync(folder.path, 0o700));
    const { status, text } = await check({ STORAGE_DIR: folder.path });
    expect(status).toBe(1);
    expect(text).toMatch(/FAULT {2}listing: is refused: EACCES/);
  });

  test('tries the store of renderings, and leaves nothing there', async () => {
    const { path } = folder;
    const environment = { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: path };
    const { status, lines } = await check(environment);
    expect(status).toBe(0);
    expect(lines).toContain(`ok     renderings: folder ${path}: one was written, read and removed`);
    for (const name of ['results', 'incoming']) expect(readdirSync(join(path, name))).toEqual([]);

    rmSync(join(path, 'results'), { recursive: true });
    writeFileSync(join(path, 'results'), 'a file in its place');
    const broken = await check(environment);
    expect(broken.status).toBe(1);
    expect(broken.text).toMatch(/FAULT {2}renderings: folder .*: one cannot be /);
  });

  test('says how far workers are confined, which is less without the programs for it', async () => {
    const environment = { LD_PRELOAD: '', MALLOC_CONF: '', PATH: '/nowhere' };
    const { status, lines } = await check(environment);
    expect(status).toBe(0);
    expect(lines.at(-1)).toMatch(/^ok {5}workers: start; .*network: shared, user: shared/);
    expect(lines.at(-1)).toContain('. Render workers are confined in part (limits): ');
    const required = await check({ ...environment, REQUIRE_CONFINEMENT: 'true' });
    expect(required.status).toBe(1);
    expect(required.lines.at(-1)).toMatch(
      /^FAULT {2}workers: REQUIRE_CONFINEMENT is true\. Render workers are confined in part /,
    );
  });
});

describe('darkroom check of a bucket', () => {
  const settings = (endpoint: string): Record<string, string> => ({
    STORAGE: 's3',
    S3_BUCKET: 'originals',
    S3_ENDPOINT: endpoint,
    AWS_EC2_METADATA_DISABLED: 'true',
    ...LOCAL_CREDENTIALS,
  });

  test('finds no fault', async () => {
    const server = await startLocalS3({ allowMismatchedSignatures: true });
    onTestFinished(() => server.close());
    await server.put('avatars/1/ab12', Buffer.from('original'));
    const { status, lines } = await check(settings(server.endpoint));
    expect([status, ...lines.slice(1, 6)]).toEqual([
      0,
      'ok     storage: bucket originals',
      'ok     missing original: is told as missing',
      'ok     listing: 1 files, 1 of them originals',
      'ok     reading: avatars/1/ab12 has 8 bytes',
      "ok     clock: within 1 s of the storage's",
    ]);
  });

  const isList = ({ url }: Parameters<ScriptedAnswer>[0]) => url.searchParams.has('list-type');
  /** A server that refuses everything, what is wrong besides it, and what is found in the third line and the ones after. */
  const refusals: readonly (readonly [string, ScriptedAnswer, readonly RegExp[]])[] = [
    [
      'the lack of the right to list',
      (_, response) => respondWithError(response, 403, 'AccessDenied'),
      [
        /^FAULT {2}missing original: is told as a failure.*AccessDenied.*without the right to list \(s3:ListBucket\), S3 answers 403 .* 502 instead of 404$/,
        /^FAULT {2}listing: is refused: AccessDenied.*; grant s3:ListBucket$/,
      ],
    ],
    [
      'a list that is refused for another reason',
      (request, response) =>
        respondWithError(response, 404, isList(request) ? 'NoSuchBucket' : 'NoSuchKey'),
      [
        /^ok {5}missing original: is told as missing$/,
        /^FAULT {2}listing: is refused: NoSuchBucket((?!grant).)*$/,
      ],
    ],
    [
      'a clock that is wrong',
      (_, response) => {
        response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString());
        respondWithError(response, 403, 'RequestTimeTooSkewed');
      },
      [
        /^FAULT {2}missing original: /,
        /^FAULT {2}listing: /,
        /^FAULT {2}clock: 360\d s ahead of the storage's; from 900 s on, S3 refuses what we sign \(RequestTimeTooSkewed\)$/,
      ],
    ],
    [
      'a server that does not respond',
      () => undefined,
      [
        /^FAULT {2}missing original: is told as a failure: no answer within ORIGIN_FIRST_BYTE_TIMEOUT_MS$/,
      ],
    ],
  ];
  test.each(refusals)('shows %s', async (_, respond, expected) => {
    const server = await startScriptedS3(respond);
    onTestFinished(() => server.close());
    const deadline = { ORIGIN_FIRST_BYTE_TIMEOUT_MS: expected.length === 1 ? '300' : '5000' };
    const { status, lines } = await check({ ...settings(server.endpoint), ...deadline });
    expect(status).toBe(1);
    for (const [at, line] of expected.entries()) expect(lines[2 + at]).toMatch(line);
  });

  test('shows a server that is not there', async () => {
    const { status, lines } = await check(settings('http://127.0.0.1:1'));
    expect(status).toBe(1);
    expect(lines[2]).toMatch(/^FAULT {2}missing original: .*ECONNREFUSED/);
  });
});
