import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { defer } from '../support/deferred.ts';
import {
  type RunningCommand,
  runDarkroom,
  startDarkroom,
} from '../support/processes/command-line.ts';
import { LOCAL_CREDENTIALS, type LocalS3Request, startLocalS3 } from '../support/s3/local-s3.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const MEBIBYTE = 1024 * 1024;
const KEY = 'attachments/1/2/large';
const NOTHING_STORED = 'darkroom: stopped; nothing was stored\n';

let folder: string;
let originals: string;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
  originals = join(folder, 'originals');
  mkdirSync(originals);
});

const start = (
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  program?: readonly [string, ...string[]],
): RunningCommand => {
  const running = startDarkroom(args, environment, program);
  onTestFinished(() => void running.child.kill('SIGKILL'));
  return running;
};

/** Files that are being written, and how much of them is there. */
const incomingBytes = (): number =>
  readdirSync(originals)
    .filter((name) => name.startsWith('.incoming-'))
    .reduce((sum, name) => sum + statSync(join(originals, name)).size, 0);

/** Until a part of what it was given is in the folder. */
const writing = ({ child }: RunningCommand): Promise<void> => {
  child.stdin.write(Buffer.alloc(3 * MEBIBYTE));
  return expect.poll(incomingBytes, { interval: 10 }).toBeGreaterThan(MEBIBYTE);
};

const s3Environment = (endpoint: string): Record<string, string> => ({
  STORAGE: 's3',
  S3_BUCKET: 'originals',
  S3_ENDPOINT: endpoint,
  ...LOCAL_CREDENTIALS,
});

/** A server of S3 that takes every request and responds to none; its settings, and when it is asked. */
async function startSilentS3() {
  const server = createServer((socket) => void socket.on('error', () => undefined).resume());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const asked = once(server, 'connection');
  const { port } = server.address() as AddressInfo;
  return { environment: s3Environment(`http://127.0.0.1:${port}`), asked };
}

describe.each(['SIGINT', 'SIGTERM'] as const)('a command that gets %s', (signal) => {
  test('dies of it once it has cleaned up: put into a folder', async () => {
    mkdirSync(join(originals, 'attachments/1/2'), { recursive: true });
    writeFileSync(join(originals, KEY), 'before');
    const running = start(['put', KEY, '-'], { STORAGE_DIR: originals });
    await writing(running);
    running.child.kill(signal);
    expect(await running.ended).toBe(signal);
    expect(running.stderr()).toBe(NOTHING_STORED);
    expect(readdirSync(originals)).toEqual(['attachments']);
    expect(readFileSync(join(originals, KEY), 'utf8')).toBe('before');
  });

  test('leaves no folder of a key that there was nothing at', async () => {
    const running = start(['put', KEY, '-'], { STORAGE_DIR: originals });
    await writing(running);
    running.child.kill(signal);
    expect(await running.ended).toBe(signal);
    expect(readdirSync(originals)).toEqual([]);
  });

  test('dies of it before a pipe that nothing writes to', async () => {
    const pipe = join(folder, 'pipe');
    spawnSync('mkfifo', [pipe]);
    const running = start(['put', KEY, pipe], { STORAGE_DIR: originals });
    const otherEnd = await open(pipe, 'w'); // is there once the command has opened it
    onTestFinished(() => otherEnd.close());
    running.child.kill(signal);
    expect(await running.ended).toBe(signal);
    expect(running.stderr()).toBe(NOTHING_STORED);
  });

  test.each([
    ['put', ['put', KEY, 'package.json'], NOTHING_STORED],
    ['render', ['render', '/emojis/1.webp', '-'], 'darkroom: stopped\n'],
    ['check', ['check'], 'darkroom: stopped\n'],
  ])('dies of it before a storage that does not respond: %s', async (_, args, message) => {
    const { environment, asked } = await startSilentS3();
    const running = start(args, {
      ...environment,
      ORIGIN_FIRST_BYTE_TIMEOUT_MS: '60000',
      ORIGIN_TIMEOUT_MS: '60000',
    });
    await asked;
    running.child.kill(signal);
    expect(await running.ended).toBe(signal);
    expect(running.stderr()).toBe(message);
  });

  // A shell that stands between npx and the command, and one that gives way to it: npx passes on what it gets.
  test.each(['dash', 'bash'])('says so through npx and %s', async (shell) => {
    const environment = { STORAGE_DIR: originals, HOME: folder };
    const npx = ['npx', '--offline', `--script-shell=${shell}`, 'darkroom'] as const;
    const running = start(['put', KEY, '-'], environment, npx);
    await writing(running);
    process.kill(-(running.child.pid ?? Number.NaN), signal); // as terminals and `timeout` do
    expect(await running.ended).toBe(signal);
    expect(running.stderr()).toContain(NOTHING_STORED);
    expect(readdirSync(originals)).toEqual([]);
  });
});

describe('a command', () => {
  test.each([
    ['INT', 130],
    ['TERM', 143],
  ])('that gets SIG%s has the status that shells have for it', async (signal, status) => {
    // The shell is asked: a status alone does not say whether it was a signal.
    const script = `
      node bin/darkroom.mjs put ${KEY} - </dev/zero &
      until ls '${originals}'/.incoming-* >'${folder}/seen' 2>&1; do sleep 0.05; done
      kill -${signal} $!; wait $!; echo $?`;
    // In a shell without job control, what runs in the background ignores SIGINT, unless it asks for it.
    const child = spawn('bash', ['-c', `set -m; ${script}`], {
      env: { PATH: process.env.PATH ?? '', STORAGE_DIR: originals },
    });
    let shown = '';
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
    await once(child, 'close');
    expect(shown.trim()).toBe(String(status));
    expect(readdirSync(originals)).toEqual([]);
  });

  test('that gets a signal twice within a moment takes it for one, and cleans up', async () => {
    // As `timeout` sends it, and npx where a terminal has sent it already.
    const running = start(['put', KEY, '-'], { STORAGE_DIR: originals });
    await writing(running);
    running.child.kill('SIGINT');
    running.child.kill('SIGTERM');
    expect(['SIGINT', 'SIGTERM']).toContain(await running.ended); // the system chooses which comes first
    expect(running.stderr()).toBe(NOTHING_STORED);
    expect(readdirSync(originals)).toEqual([]);
  });

  test('that a second signal finds still cleaning up ends at once', async () => {
    const { server, holds } = await startHoldingS3([isPart(2), isTakenBack]);
    const [part, takingBack] = holds;
    const running = start(['put', KEY, largeFile()], s3Environment(server.endpoint));
    await part?.come.promise;
    running.child.kill('SIGINT');
    await takingBack?.come.promise;
    await new Promise((resolve) => setTimeout(resolve, 200)); // what comes sooner is the same signal
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe('SIGTERM');
  });

  test('at a terminal shows its progress, and cleans up after ^C, which comes twice through npx', () => {
    const large = join(folder, 'large');
    writeFileSync(large, '');
    truncateSync(large, 6 * 1024 ** 3);
    const log = join(folder, 'terminal');
    const command = `npx --offline darkroom put ${KEY} '${large}'`;
    const script = `
      (until grep -q 'of 6.0 GiB' '${log}' 2>/dev/null; do sleep 0.05; done; printf '\\003') |
      script --quiet --flush --return --command "stty cols 60; ${command}" '${log}'`;
    const { status } = spawnSync('bash', ['-c', script], {
      env: { ...process.env, STORAGE_DIR: originals },
      timeout: 25_000,
    });
    const shown = readFileSync(log, 'utf8');
    expect(shown).toMatch(/\[K {1,2}\d+ % {2}[\d.]+ .iB of 6\.0 GiB, [\d.]+ .iB\/s/);
    expect(shown).toContain('darkroom: stopped; nothing was stored');
    expect(status).toBe(130);
    expect(readdirSync(originals)).toEqual([]);
    expect(existsSync(large)).toBe(true);
  });
});

const isPart =
  (number: number) =>
  ({ method, query }: LocalS3Request): boolean =>
    method === 'PUT' && query.partNumber === String(number);
const isBeginning = ({ query }: LocalS3Request): boolean => query.uploads !== undefined;
const isCompletion = ({ method, query }: LocalS3Request): boolean =>
  method === 'POST' && query.uploadId !== undefined;
const isTakenBack = ({ method, query }: LocalS3Request): boolean =>
  method === 'DELETE' && query.uploadId !== undefined;

const largeFile = (): string => {
  const path = join(folder, 'large');
  writeFileSync(path, Buffer.alloc(40 * MEBIBYTE, 'large'));
  return path;
};

/** A server of S3, and a moment for each kind of request: when it comes, and a leave to go on. */
async function startHoldingS3(kinds: readonly ((request: LocalS3Request) => boolean)[]) {
  const holds = kinds.map((isOfKind) => ({ isOfKind, come: defer<void>(), leave: defer<void>() }));
  const server = await startLocalS3({
    allowMismatchedSignatures: true,
    takesUploadsBack: true,
    beforeRequest: (request) => {
      const hold = holds.find(({ isOfKind }) => isOfKind(request));
      hold?.come.resolve();
      return hold?.leave.promise;
    },
  });
  onTestFinished(() => {
    for (const { leave } of holds) leave.resolve();
    return server.close();
  });
  return { server, holds };
}

describe('^C in the upload of a large file to a bucket', () => {
  /** Something at the key, a `put` that would replace it, and ^C when a request has come. */
  async function stopAt(...kinds: readonly ((request: LocalS3Request) => boolean)[]) {
    const { server, holds } = await startHoldingS3(kinds);
    await server.put(KEY, Buffer.from('before'));
    const running = start(['put', KEY, largeFile()], s3Environment(server.endpoint));
    await holds[0]?.come.promise;
    running.child.kill('SIGINT');
    return { server, holds, running };
  }

  const readStored = async (endpoint: string): Promise<Buffer> => {
    const environment = s3Environment(endpoint);
    return (await runDarkroom(['render', `/${KEY}`, '-'], { environment })).stdout;
  };

  test.each([1, 2, 3])(
    'at part %i leaves nothing behind, and what was there as it was',
    async (part) => {
      const { server, running } = await stopAt(isPart(part));
      expect([await running.ended, running.stderr()]).toEqual(['SIGINT', NOTHING_STORED]);
      expect(await server.listUploads()).toEqual([]);
      expect((await readStored(server.endpoint)).toString()).toBe('before');
    },
  );

  test('before the response to its beginning takes back what it has begun', async () => {
    const { server, holds, running } = await stopAt(isBeginning);
    await new Promise((resolve) => setTimeout(resolve, 200)); // the response comes after the signal
    holds[0]?.leave.resolve();
    expect([await running.ended, running.stderr()]).toEqual(['SIGINT', NOTHING_STORED]);
    expect(await server.listUploads()).toEqual([]);
    expect((await readStored(server.endpoint)).toString()).toBe('before');
  });

  test('takes it back twice, for a part may have been on its way into the server', async () => {
    let times = 0;
    const { running } = await stopAt(isPart(2), (request) => {
      if (isTakenBack(request)) times += 1;
      return false;
    });
    expect(await running.ended).toBe('SIGINT');
    expect(times).toBe(2);
  });

  test('at its completion comes too late: it is stored, and the command says so', async () => {
    const { server, holds, running } = await stopAt(isCompletion);
    await new Promise((resolve) => setTimeout(resolve, 200));
    holds[0]?.leave.resolve();
    expect([await running.ended, running.stderr()]).toEqual([0, '']);
    expect(await server.listUploads()).toEqual([]);
    expect((await readStored(server.endpoint)).length).toBe(40 * MEBIBYTE);
  });

  test('at a completion without a response says that it is not known', async () => {
    const { server, running } = await stopAt(isCompletion);
    expect(await running.ended).toBe(1);
    expect(running.stderr()).toMatch(
      /^darkroom: attachments\/1\/2\/large cannot be written: .*nobody knows whether it is stored\n$/,
    );
    expect(await server.listUploads()).toEqual([]);
  });
});
