import { readdir } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connectTo, sendRaw } from '../support/http/raw-http.ts';
import { startService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { readSample } from '../support/test-app.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';

const MAX_UPLOADS = 64;

/** Above the least pace, which is 16 KiB/s over 30 s, for longer than that. */
const PACE_BYTES_PER_SECOND = 20 * 1024;
const WATCHED_SECONDS = 40;

/** No measure of speed: what is held up by an upload waits for minutes. */
const PROMPT_MS = 5_000;

const AVATAR = 'avatars/2/cd34';
const PICTURE = 'attachments/1/12/red-panda.jpg';

/** A client that has not much of a connection. */
interface SlowClient {
  readonly socket: Socket;
  readonly sentBytes: () => number;
  /** Whatever the service has said to it so far. */
  readonly heard: () => string;
}

/** Begins an upload that takes hours. */
async function uploadSlowly(port: number, key: string): Promise<SlowClient> {
  const socket = await connectTo(port);
  let heard = '';
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1');
  });
  socket.write(`PUT ${uploadTarget(key)} HTTP/1.1\r\nHost: a\r\nContent-Length: 500000000\r\n\r\n`);
  const startMs = performance.now();
  let sentBytes = 0;
  const sending = setInterval(() => {
    const dueBytes = Math.ceil(((performance.now() - startMs) / 1000) * PACE_BYTES_PER_SECOND);
    socket.write(Buffer.alloc(dueBytes - sentBytes, 'x'));
    sentBytes = dueBytes;
  }, 250);
  socket.once('close', () => clearInterval(sending));
  return { socket, sentBytes: () => sentBytes, heard: () => heard };
}

test('64 slow uploads hold nobody up, and leave nothing when their clients vanish', async () => {
  const folder = await useTemporaryFolder();
  await folder.put(AVATAR, readSample(AVATAR));
  await folder.put(PICTURE, readSample(PICTURE));
  const service = await startService({ STORAGE_DIR: folder.path, RELAY_SIGNING_KEYS: RELAY_KEY });
  onTestFinished(async () => void (await service.stop()));
  const port = Number(new URL(service.origin).port);
  const list = async () => (await readdir(folder.path, { recursive: true })).sort();
  const before = await list();

  let slowestMs = 0;
  const ask = async (method: string, target: string, headers = {}) => {
    const startMs = performance.now();
    const answer = await sendRaw(port, method, target, headers);
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    return answer;
  };
  const hit = `/${AVATAR}.png?size=64`;
  expect((await ask('GET', hit)).status).toBe(200);

  const numbers = Array.from({ length: MAX_UPLOADS }, (_, number) => number);
  const clients = await Promise.all(
    numbers.map((number) => uploadSlowly(port, `attachments/7/${number}/slow.mp4`)),
  );
  onTestFinished(() => {
    for (const { socket } of clients) socket.destroy();
  });
  const countTemporary = async () =>
    (await list()).filter((name) => name.startsWith('.incoming-')).length;
  await expect.poll(countTemporary, { timeout: 20_000 }).toBe(MAX_UPLOADS);

  slowestMs = 0;
  let width = 16;
  const outcomes = new Set<string>();
  const askOthers = async (): Promise<number> => {
    width += 1;
    const expecting = { 'Content-Length': '1', Expect: '100-continue' };
    const [avatar, rendering, upload] = [
      await ask('GET', hit),
      await ask('GET', `/${PICTURE}?width=${width}`),
      await ask('PUT', uploadTarget('attachments/8/8/more'), expecting),
    ];
    outcomes.add(`hit: ${avatar.status} ${avatar.headers['cache-status']}`);
    const isRendered = rendering.headers['cache-status']?.startsWith('darkroom; fwd=miss');
    outcomes.add(`rendering: ${rendering.status} ${isRendered}`);
    outcomes.add(`upload: ${upload.status}, again after ${upload.headers['retry-after']} s`);
    return Math.min(...clients.map(({ sentBytes }) => sentBytes()));
  };
  await expect
    .poll(askOthers, { timeout: 150_000, interval: 500 })
    .toBeGreaterThan(WATCHED_SECONDS * PACE_BYTES_PER_SECOND);
  expect([...outcomes]).toEqual([
    'hit: 200 darkroom; hit',
    'rendering: 200 true',
    'upload: 503, again after 1 s',
  ]);
  expect(slowestMs).toBeLessThan(PROMPT_MS);
  // Nor are they cut off.
  expect(clients.map(({ heard }) => heard()).join('')).toBe('');
  expect(await countTemporary()).toBe(MAX_UPLOADS);

  for (const [index, { socket }] of clients.entries()) {
    if (index % 2 === 0) socket.resetAndDestroy();
    else socket.destroy();
  }
  await expect.poll(list, { timeout: 20_000 }).toEqual(before);
  const statuses = await Promise.all(
    numbers.map(async (number) => {
      const target = uploadTarget(`attachments/7/${number}/slow.mp4`);
      return (await sendRaw(port, 'PUT', target, { 'Content-Length': '5' }, 'hello')).status;
    }),
  );
  expect(statuses).toEqual(numbers.map(() => 200));
});
