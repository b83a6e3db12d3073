import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { failureOf } from '../../src/workers/child/render.ts';
import type { Sandbox } from '../../src/workers/confinement/sandbox.ts';
import { ForkServer } from '../../src/workers/fork-server/client.ts';
import { killWorker } from '../../src/workers/process-tree.ts';
import { FORK_SERVER } from '../support/processes/worker-pool.ts';

/** Module whose function reads outside of its memory. */
const trapping = 'AGFzbQEAAAABBAFgAAADAgEABQMBAAEHBQEBZgAACgoBCABBfygCABoL';

const thrownBy = (fail: () => unknown) => new Promise(fail).catch((error: unknown) => error);

const corrupt = (cause: unknown) => new MediaError('UNPROCESSABLE_MEDIA', { cause });

test.each([
  'Input buffer has corrupt header: vips_tracked: out of memory -- size == 76MB',
  'VipsJpeg: Insufficient memory (case 4)',
  'source: bad seek to 191919\nheif: Invalid input: Unspecified: Memory allocation error (2.0)',
  'Could not allocate enough memory for raw output',
  'WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance',
  'WebAssembly.Memory(): could not allocate memory',
  'std::bad_alloc',
])('reports a failed allocation as too large an original: %s', (message) => {
  expect(failureOf(new Error(message)).code).toBe('MEDIA_TOO_LARGE');
  expect(failureOf(corrupt(new Error(message))).code).toBe('MEDIA_TOO_LARGE');
});

test('reports an array that cannot be allocated as too large an original', async () => {
  const error = await thrownBy(() => new ArrayBuffer(Number.MAX_SAFE_INTEGER));
  expect(failureOf(error)).toEqual({ code: 'MEDIA_TOO_LARGE', cause: error });
});

test('reports a trap in WebAssembly as a corrupt original', async () => {
  const code = await WebAssembly.compile(Buffer.from(trapping, 'base64'));
  const { f } = new WebAssembly.Instance(code, {}).exports as Record<string, () => void>;
  const trap = await thrownBy(() => f?.());
  expect(String(trap)).toBe('RuntimeError: memory access out of bounds');
  expect(failureOf(corrupt(trap))).toEqual({ code: 'UNPROCESSABLE_MEDIA', cause: trap });
});

test.each([
  'memory access out of bounds',
  "Cannot read properties of undefined (reading 'memory')",
  'Expected an allocation of the palette',
])('reports an internal error whose message contains "memory" or "allocation": %s', (message) => {
  expect(failureOf(new TypeError(message)).code).toBe('INTERNAL_ERROR');
});

test.each([
  new Error('glib: Error creating thread: Resource temporarily unavailable'),
  Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' }),
  Object.assign(new Error('mmap ENOMEM'), { code: 'ENOMEM' }),
  Object.assign(new Error('open EMFILE'), { code: 'EMFILE' }),
  Object.assign(new Error('open ENFILE'), { code: 'ENFILE' }),
])('reports a shortage of the system as overload: $message', (cause) => {
  expect(failureOf(corrupt(cause))).toEqual({ code: 'OVERLOADED', cause });
});

/** Program that waits, starts a process and reports its end, like the programs of sandboxes. */
const program =
  "setTimeout(() => { require('child_process').spawn('sleep', ['60']).on('exit', (_, signal) => process.exit(signal === 'SIGKILL' ? 7 : 8)) }, 200)";

test('kills a starting worker, and the program that starts it waits for its end', async () => {
  const child = spawn(process.execPath, ['-e', program]);
  killWorker(child, true, 10_000);
  expect(await once(child, 'exit')).toEqual([7, null]);
});

test('kills a program that does not start a worker', async () => {
  const child = spawn('sleep', ['60']);
  killWorker(child, true, 2);
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
});

const LINES = 500;

/** Program that writes to its channel at once, and for longer than the transfer of the channel takes. */
const WRITER = `n=0; while [ $n -lt ${LINES} ]; do echo line $n >&3; n=$((n+1)); done`;

const sandbox: Sandbox = {
  name: 'unconfined',
  isIsolated: false,
  hasOwnUsers: false,
  hasFilter: false,
  compose: () => ({ command: '/bin/sh', words: ['-c', WRITER], inputs: [] }),
};

test('loses no bytes that a program writes while its channel is in transfer', async () => {
  const forkServer = new ForkServer(fileURLToPath(FORK_SERVER), { PATH: '/usr/bin:/bin' });
  onTestFinished(() => forkServer.stop());
  const expected = Array.from({ length: LINES }, (_, n) => `line ${n}\n`).join('');
  for (let round = 0; round < 20; round += 1) {
    const channel = await new Promise<Socket>((resolve, reject) => {
      forkServer.startProgram({ sandbox, memoryBytes: 0 }, [], {
        onStarted: (_, opened) => resolve(opened),
        onLine: () => undefined,
        onEnd: (ending) => reject(new Error(ending)),
      });
    });
    expect(await text(channel)).toBe(expected);
  }
});
