import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameReader } from '../../../src/workers/frames.ts';
import {
  CHANNEL_DESCRIPTOR,
  formatMessage,
  type WorkerMessage,
} from '../../../src/workers/protocol.ts';

/*
 * A worker that sleeps for as long as an avatar takes, instead of rendering it: as many of them as another machine
 * has cores leave the cores of this one to the main process.
 */
const RENDER_MS = 12;
const body = Buffer.alloc(6_000, 7);

const channel = new Socket({ fd: CHANNEL_DESCRIPTOR });
const send = (message: WorkerMessage): void => {
  for (const piece of formatMessage(message)) channel.write(piece);
};
const frames = new FrameReader({ maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity });
let isGreeted = false;
channel.on('data', async (chunk) => {
  for (const _frame of frames.read(chunk)) {
    send({ kind: isGreeted ? 'begun' : 'ready' });
    if (!isGreeted) {
      isGreeted = true;
      continue;
    }
    await sleep(RENDER_MS);
    send({ kind: 'rendered', body, rssBytes: 1 });
  }
});
channel.on('close', () => process.exit());
