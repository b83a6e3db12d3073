import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { defer } from '../support/deferred.ts';
import {
  type RunningCommand,
  runDarkroom,
  startDarkroom,
} from '../support/processes/command-line.ts';
import { listenLocally } from '../support/processes/local-server.ts';
import { LOCAL_CREDENTIALS, type LocalS3Request, useLocalS3 } from '../support/s3/local-s3.ts';
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

const start = (...command: Parameters<typeof startDarkroom>): RunningCommand => {
  const running = startDarkroom(...command);
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

// Twice within a moment, as `timeout` sends it, and npx where a terminal has sent it already.
test.each<NodeJS.Signals[][]>([[['SIGINT']], [['SIGTERM']], [['SIGINT', 'SIGTERM']]])(
  'a command that puts into a folder and gets %j dies of it once it has cleaned up',
  async (signals) => {
    mkdirSync(join(originals, 'attachments/1/2'), { recursive: true });
    writeFileSync(join(originals, KEY), 'before');
    for (const key of [KEY, 'attachments/3/4/new']) {
      const running = start(['put', key, '-'], { STORAGE_DIR: originals });
      await writing(running);
      for (const signal of signals) running.child.kill(signal);
      expect(signals).toContain(await running.ended); // the system chooses which comes first
      expect(running.stderr()).toBe(NOTHING_STORED);
    }
    const left = readdirSync(originals, { recursive: true, encoding: 'utf8' }).sort();
    expect(left).toEqual(['attachments', 'attachments/1', 'attachments/1/2', KEY]);
    expect(readFileSync(join(originals, KEY), 'utf8')).toBe('before');
  },
);

describe.each(['SIGINT', 'SIGTERM'] as const)('a command that gets %s', (signal) => {
  test('dies of it before a pipe that nothing writes to', async () => {
    const pipe = join(folder, 'pipe');
    spawnSync('mkfifo', [pipe]);
    const running = start(['put', KEY, pipe], { STORAGE_DIR: originals });
    const otherEnd = await open(pipe, 'w'); // is there once the command has opened it
    onTestFinished(() => otherEnd.close());
    running.child.kill(signal);
    expect([await running.ended, running.stderr()]).toEqual([signal, NOTHING_STORED]);
  });

  test.each([
    ['put', ['put', KEY, 'package.json'], NOTHING_STORED],
    ['render', ['render', '/emojis/1.webp', '-'], 'darkroom: stopped\n'],
    ['check', ['check'], 'darkroom: stopped\n'],
  ])('dies of it before a storage that does not respond: %s', async (_, args, message) => {
    const server = createServer((socket) => void socket.on('error', () => undefined).resume());
    onTestFinished(() => void server.close());
    const running = start(args, {
      ...s3Environment(`http://127.0.0.1:${await listenLocally(server)}`),
      ORIGIN_FIRST_BYTE_TIMEOUT_MS: '60000',
      ORIGIN_TIMEOUT_MS: '60000',
    });
    await once(server, 'connection');
    running.child.kill(signal);
    expect([await running.ended, running.stderr()]).toEqual([signal, message]);
  });
});

type IsHeld = (request: LocalS3Request) => boolean;
const isPart: IsHeld = ({ method, query }) => method === 'PUT' && query.partNumber === '2';
const isBeginning: IsHeld = ({ query }) => query.uploads !== undefined;
const isCompletion: IsHeld = ({ method, query }) =>
  method === 'POST' && query.uploadId !== undefined;
const isTakenBack: IsHeld = ({ method, query }) =>
  method === 'DELETE' && query.uploadId !== undefined;

describe('^C in the upload of a large file to a bucket', () => {
  /** Something at the key, a `put` that would replace it, and ^C when a request has come, which then waits for leave. */
  async function stopAt(isHeld: IsHeld, holdsTakingBack = false) {
    const [come, leave, takingBack] = [defer<void>(), defer<void>(), defer<void>()];
    let timesTakenBack = 0;
    const server = await useLocalS3({
      allowMismatchedSignatures: true,
      takesUploadsBack: true,
      beforeRequest: (request) => {
        if (isTakenBack(request)) {
          timesTakenBack += 1;
          takingBack.resolve();
          if (holdsTakingBack) return leave.promise;
        }
        if (!isHeld(request)) return undefined;
        come.resolve();
        return leave.promise;
      },
    });
    onTestFinished(() => leave.resolve());
    await server.put(KEY, Buffer.from('before'));
    const large = join(folder, 'large');
    writeFileSync(large, Buffer.alloc(40 * MEBIBYTE, 'large'));
    const environment = s3Environment(server.endpoint);
    const running = start(['put', KEY, large], environment);
    await come.promise;
    running.child.kill('SIGINT');
    return {
      running,
      takingBack: takingBack.promise,
      timesTakenBack: () => timesTakenBack,
      listUploads: server.listUploads,
      /** Responds to what was held, after the signal. */
      respond: () => sleep(200).then(() => leave.resolve()),
      readStored: async () =>
        (await runDarkroom(['render', `/${KEY}`, '-'], { environment })).stdout,
    };
  }

  test.each([
    ['a part', isPart],
    ['its beginning', isBeginning],
  ])('at %s leaves nothing behind, and what was there as it was', async (_, isHeld) => {
    const { running, respond, listUploads, timesTakenBack, readStored } = await stopAt(isHeld);
    if (isHeld === isBeginning) await respond();
    expect([await running.ended, running.stderr()]).toEqual(['SIGINT', NOTHING_STORED]);
    expect(await listUploads()).toEqual([]);
    // A part may have been on its way into the server when the upload was taken back.
    if (isHeld === isPart) expect(timesTakenBack()).toBe(2);
    expect((await readStored()).toString()).toBe('before');
  });

  test('and a second one, while the first still cleans up, end the command at once', async () => {
    const { running, takingBack } = await stopAt(isPart, true);
    await takingBack;
    await sleep(200); // what comes sooner is the same signal
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe('SIGTERM');
  });

  test('at its completion comes too late: it is stored, and the command says so', async () => {
    const { running, respond, listUploads, readStored } = await stopAt(isCompletion);
    await respond();
    expect([await running.ended, running.stderr()]).toEqual([0, '']);
    expect(await listUploads()).toEqual([]);
    expect((await readStored()).length).toBe(40 * MEBIBYTE);
  });

  test('at a completion without a response says that it is not known', async () => {
    const { running, listUploads } = await stopAt(isCompletion);
    expect(await running.ended).toBe(1);
    expect(running.stderr()).toMatch(
      /^darkroom: attachments\/1\/2\/large cannot be written: .*nobody knows whether it is stored\n$/,
    );
    expect(await listUploads()).toEqual([]);
  });
});
