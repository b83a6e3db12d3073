import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../support/s3/local-s3.ts';
import { type ScriptedRequest, startScriptedS3 } from '../support/s3/scripted-s3.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'darkroom-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function check(environment: Record<string, string>) {
  const { status, stdout, stderr } = await runDarkroom(['check'], { environment });
  expect(stderr).toBe('');
  return { status, lines: stdout.toString().trimEnd().split('\n') };
}

const subjects = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/^(\w+) +([\w ]+): .*$/s, '$1 $2'));

const s3 = (endpoint: string): Record<string, string> => ({
  STORAGE: 's3',
  S3_BUCKET: 'originals',
  S3_ENDPOINT: endpoint,
  AWS_EC2_METADATA_DISABLED: 'true',
  ...LOCAL_CREDENTIALS,
});

/** A server that answers with an error of S3, and with the time as it sees it. */
async function startRefusing(
  refuse: (request: ScriptedRequest) => readonly [status: number, code: string],
  date = new Date(),
) {
  const server = await startScriptedS3((request, response: ServerResponse) => {
    const [status, code] = refuse(request);
    response.writeHead(status, { date: date.toUTCString(), 'content-type': 'application/xml' });
    response.end(`<Error><Code>${code}</Code><Message>It is ${code}.</Message></Error>`);
  });
  onTestFinished(() => server.close());
  return server.endpoint;
}

describe('darkroom check', () => {
  test('finds nothing to complain of in the samples', async () => {
    const { status, lines } = await check({});
    expect(status).toBe(0);
    expect(subjects(lines)).toEqual([
      'ok settings',
      'ok storage',
      'ok missing original',
      'ok listing',
      'ok reading',
      'ok renderings',
      'ok workers',
    ]);
    expect(lines.join('\n')).toMatch(/workers: start; the service has \d+ \(network: /);
  });

  test('tells all faults of the settings, and no secret', async () => {
    const { status, lines } = await check({
      PORT: 'many',
      ADMIN_PORT: '9090',
      ADMIN_TOKEN: 'hush-hush',
      S3_ENDPOINT: 'http://me:hush-hush@s3.example',
    });
    expect(status).toBe(78);
    expect(subjects(lines)).toEqual(Array.from({ length: 3 }, () => 'FAULT settings'));
    for (const name of ['PORT', 'ADMIN_TOKEN', 'S3_ENDPOINT']) {
      expect(lines.join('\n')).toContain(`settings: ${name}: expected `);
    }
    expect(lines.join('\n')).not.toContain('hush-hush');
  });

  test('names the settings that are set, and none of their values', async () => {
    const { lines } = await check({
      WORKERS: '2',
      ADMIN_PORT: '1',
      ADMIN_TOKEN: 'hush-hush-hush-hush',
    });
    expect(lines[0]).toBe('ok     settings: valid: WORKERS, ADMIN_PORT, ADMIN_TOKEN');
    expect(lines.join('\n')).not.toContain('hush');
  });

  test('warns of a name that is none, which is no fault', async () => {
    const { status, lines } = await check({ STORAGE_DIRR: 'hush-hush' });
    expect(status).toBe(0);
    expect(lines[1]).toBe(
      'WARN   settings: STORAGE_DIRR is no setting of Darkroom; is STORAGE_DIR meant?',
    );
  });

  test('of a folder that is empty, all is well; of one laid out otherwise, not', async () => {
    const empty = await check({ STORAGE_DIR: folder });
    expect([empty.status, empty.lines[3]]).toEqual([0, 'ok     listing: nothing is there yet']);
    mkdirSync(join(folder, 'originals/avatars/1'), { recursive: true });
    writeFileSync(join(folder, 'originals/avatars/1/ab12'), 'x');
    const { status, lines } = await check({ STORAGE_DIR: folder });
    expect(status).toBe(1);
    expect(lines[3]).toBe(
      'FAULT  listing: none of 1 files has the key of an original; the first is "originals/avatars/1/ab12". Is STORAGE_DIR right?',
    );
  });

  test.skipIf(process.getuid?.() === 0)('tells of a folder that must not be read', async () => {
    chmodSync(folder, 0o000);
    onTestFinished(() => chmodSync(folder, 0o700));
    const { status, lines } = await check({ STORAGE_DIR: folder });
    expect(status).toBe(1);
    expect(lines.join('\n')).toMatch(/FAULT {2}listing: is refused: EACCES/);
  });

  test('tries the store of renderings, and leaves nothing there', async () => {
    const environment = { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: folder };
    const { status, lines } = await check(environment);
    expect(status).toBe(0);
    expect(lines).toContain(
      `ok     renderings: folder ${folder}: one was written, read and removed`,
    );
    expect(readdirSync(join(folder, 'results'))).toEqual([]);
    expect(readdirSync(join(folder, 'incoming'))).toEqual([]);

    rmSync(join(folder, 'results'), { recursive: true });
    writeFileSync(join(folder, 'results'), 'a file in its place');
    const broken = await check(environment);
    expect(broken.status).toBe(1);
    expect(broken.lines.join('\n')).toMatch(/FAULT {2}renderings: folder .*: one cannot be /);
  });

  test('tells when workers cannot start', async () => {
    const { status, lines } = await check({ LD_PRELOAD: '', MALLOC_CONF: '', PATH: '/nowhere' });
    expect(status).toBe(0); // without its helpers, a worker starts less confined
    expect(lines.at(-1)).toMatch(/^ok {5}workers: start; .*network: shared, user: shared/);
  });
});

describe('darkroom check of a bucket', () => {
  test('finds nothing to complain of', async () => {
    const server = await startLocalS3({ allowMismatchedSignatures: true });
    onTestFinished(() => server.close());
    await server.put('avatars/1/ab12', Buffer.from('original'));
    const { status, lines } = await check(s3(server.endpoint));
    expect(lines.join('\n')).not.toContain('FAULT');
    expect(status).toBe(0);
    expect(lines.slice(1, 6)).toEqual([
      'ok     storage: bucket originals',
      'ok     missing original: is told as missing',
      'ok     listing: 1 files, 1 of them originals',
      'ok     reading: avatars/1/ab12 has 8 bytes',
      "ok     clock: within 1 s of the storage's",
    ]);
  });

  test('says what follows from the lack of the right to list', async () => {
    const endpoint = await startRefusing(() => [403, 'AccessDenied']);
    const { status, lines } = await check(s3(endpoint));
    expect(status).toBe(1);
    expect(lines[2]).toMatch(
      /^FAULT {2}missing original: is told as a failure.*AccessDenied.*without the right to list \(s3:ListBucket\), S3 answers 403 .* 502 instead of 404$/,
    );
    expect(lines[3]).toMatch(/^FAULT {2}listing: is refused: AccessDenied.*; grant s3:ListBucket$/);
  });

  test('a right to list alone is not taken for the cause', async () => {
    const endpoint = await startRefusing(({ url }) =>
      url.searchParams.has('list-type') ? [404, 'NoSuchBucket'] : [404, 'NoSuchKey'],
    );
    const { lines } = await check(s3(endpoint));
    expect(lines[2]).toBe('ok     missing original: is told as missing');
    expect(lines[3]).toMatch(/^FAULT {2}listing: is refused: NoSuchBucket/);
    expect(lines[3]).not.toContain('grant');
  });

  test('compares the clocks', async () => {
    const hourAgo = new Date(Date.now() - 3_600_000);
    const endpoint = await startRefusing(() => [403, 'RequestTimeTooSkewed'], hourAgo);
    const { status, lines } = await check(s3(endpoint));
    expect(status).toBe(1);
    expect(lines.find((line) => line.includes('clock:'))).toMatch(
      /^FAULT {2}clock: 360\d s ahead of the storage's; from 900 s on, S3 refuses what we sign \(RequestTimeTooSkewed\)$/,
    );
  });

  test('tells of a server that is not there, or does not answer', async () => {
    const gone = await check(s3('http://127.0.0.1:1'));
    expect(gone.status).toBe(1);
    expect(gone.lines[2]).toMatch(/^FAULT {2}missing original: .*ECONNREFUSED/);
    expect(gone.lines.join('\n')).not.toContain('S3RVER');

    const silent = await startScriptedS3(() => undefined);
    onTestFinished(() => silent.close());
    const { status, lines } = await check({
      ...s3(silent.endpoint),
      ORIGIN_FIRST_BYTE_TIMEOUT_MS: '300',
    });
    expect(status).toBe(1);
    expect(lines[2]).toBe(
      'FAULT  missing original: is told as a failure: no answer within ORIGIN_FIRST_BYTE_TIMEOUT_MS',
    );
  });
});
