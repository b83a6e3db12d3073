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
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const MEBIBYTE = 1024 * 1024;
const KEY = 'attachments/1/2/large';
const NOTHING_STORED = 'darkroom: stopped; nothing was stored\n';

let directory: string;
let originals: string;
beforeEach(async () => {
  directory = (await useTemporaryDirectory()).path;
  originals = join(directory, 'originals');
  mkdirSync(originals);
});

const start = (...command: Parameters<typeof startDarkroom>): RunningCommand => {
  const running = startDarkroom(...command);
  onTestFinished(() => void running.child.kill('SIGKILL'));
  return running;
};

/** Returns standard error without the progress, which appears after a second. */
const messagesOf = ({ stderr }: RunningCommand): string =>
  stderr().replaceAll(new RegExp(`^${KEY}: \\d+ %, .*\n`, 'gm'), '');

const incomingBytes = (): number =>
  readdirSync(originals)
    .filter((name) => name.startsWith('.incoming-'))
    .reduce((sum, name) => sum + statSync(join(originals, name)).size, 0);

/** Waits until a part of the input is in the directory. */
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

// `timeout` and npx send a signal twice within a moment.
test.each<NodeJS.Signals[][]>([[['SIGINT']], [['SIGTERM']], [['SIGINT', 'SIGTERM']]])(
  'put into a directory ends by %j after cleaning up',
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

describe.each(['SIGINT', 'SIGTERM'] as const)('a command that receives %s', (signal) => {
  test('ends while it reads from a silent pipe', async () => {
    const pipe = join(directory, 'pipe');
    spawnSync('mkfifo', [pipe]);
    const running = start(['put', KEY, pipe], { STORAGE_DIR: originals });
    const otherEnd = await open(pipe, 'w'); // is there once the command has opened it
    onTestFinished(() => otherEnd.close());
    running.child.kill(signal);
    expect([await running.ended, messagesOf(running)]).toEqual([signal, NOTHING_STORED]);
  });

  test.each([
    ['put', ['put', KEY, 'package.json'], NOTHING_STORED],
    ['render', ['render', '/emojis/1.webp', '-'], 'darkroom: stopped\n'],
    ['check', ['check'], 'darkroom: stopped\n'],
  ])('ends while the storage does not respond: %s', async (_, args, message) => {
    const server = createServer((socket) => void socket.on('error', () => undefined).resume());
    onTestFinished(() => void server.close());
    const running = start(args, {
      ...s3Environment(`http://127.0.0.1:${await listenLocally(server)}`),
      ORIGIN_FIRST_BYTE_TIMEOUT_MS: '60000',
      ORIGIN_TIMEOUT_MS: '60000',
    });
    await once(server, 'connection');
    running.child.kill(signal);
    expect([await running.ended, messagesOf(running)]).toEqual([signal, message]);
  });
});

type RequestFilter = (request: LocalS3Request) => boolean;
const isPart: RequestFilter = ({ method, query }) => method === 'PUT' && query.partNumber === '2';
const isBeginning: RequestFilter = ({ query }) => query.uploads !== undefined;
const isCompletion: RequestFilter = ({ method, query }) =>
  method === 'POST' && query.uploadId !== undefined;
const isTakenBack: RequestFilter = ({ method, query }) =>
  method === 'DELETE' && query.uploadId !== undefined;

describe('^C in the upload of a large file to a bucket', () => {
  /** Stores an object, starts a `put` that replaces it, and sends SIGINT during the selected request. */
  async function stopAt(isSelected: RequestFilter, holdsTakingBack = false) {
    const [come, leave, takingBack] = [defer<void>(), defer<void>(), defer<void>()];
    let timesTakenBack = 0;
    const server = await useLocalS3({
      allowMismatchedSignatures: true,
      canAbortUploads: true,
      beforeRequest: (request) => {
        if (isTakenBack(request)) {
          timesTakenBack += 1;
          takingBack.resolve();
          if (holdsTakingBack) return leave.promise;
        }
        if (!isSelected(request)) return undefined;
        come.resolve();
        return leave.promise;
      },
    });
    onTestFinished(() => leave.resolve());
    await server.put(KEY, Buffer.from('before'));
    const large = join(directory, 'large');
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
      /** Responds to the delayed request, after the signal. */
      respond: () => sleep(200).then(() => leave.resolve()),
      readStored: async () =>
        (await runDarkroom(['render', `/${KEY}`, '-'], { environment })).stdout,
    };
  }

  test.each([
    ['a part', isPart],
    ['its beginning', isBeginning],
  ])('at %s leaves no part behind, and the original unchanged', async (_, isSelected) => {
    const { running, respond, listUploads, timesTakenBack, readStored } = await stopAt(isSelected);
    if (isSelected === isBeginning) await respond();
    expect([await running.ended, messagesOf(running)]).toEqual(['SIGINT', NOTHING_STORED]);
    expect(await listUploads()).toEqual([]);
    // A part may reach the server after the upload was aborted.
    if (isSelected === isPart) expect(timesTakenBack()).toBe(2);
    expect((await readStored()).toString()).toBe('before');
  });

  test('and a second one during the cleanup end the command at once', async () => {
    const { running, takingBack } = await stopAt(isPart, true);
    await takingBack;
    await sleep(200); // an earlier one would count as the same signal
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe('SIGTERM');
  });

  test('during the completion is too late: the file is stored, and the command reports it', async () => {
    const { running, respond, listUploads, readStored } = await stopAt(isCompletion);
    await respond();
    expect([await running.ended, messagesOf(running)]).toEqual([0, '']);
    expect(await listUploads()).toEqual([]);
    expect((await readStored()).length).toBe(40 * MEBIBYTE);
  });

  test('at a completion without a response reports an unknown outcome', async () => {
    const { running, listUploads } = await stopAt(isCompletion);
    expect(await running.ended).toBe(1);
    expect(messagesOf(running)).toMatch(
      /^darkroom: attachments\/1\/2\/large cannot be written: .*the object may or may not be stored\n$/,
    );
    expect(await listUploads()).toEqual([]);
  });
});
