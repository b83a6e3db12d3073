import { MediaError } from '../media/errors.ts';
import type { RenderCommand, WorkerMessage } from '../pipeline/worker-protocol.ts';
import { render } from './render.ts';
import { setUpSharp } from './sharp-setup.ts';

/**
 * A render worker: a process of its own, so that a decoder that hangs, crashes or eats memory takes
 * one job with it and nothing else. It reads nothing but its IPC channel and holds no credentials.
 */
setUpSharp();
process.on('message', (command: RenderCommand) => {
  send({ kind: 'begun' });
  answer(command).then(send, (error: unknown) => {
    throw error;
  });
});
// The main process is gone, however it went: nobody is left to work for.
process.on('disconnect', () => process.exit(0));
// A terminal's ^C reaches the whole process group; the main process decides when a worker ends.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
send({ kind: 'ready' });

async function answer({ original, job }: RenderCommand): Promise<WorkerMessage> {
  try {
    return { kind: 'rendered', body: await render(original, job) };
  } catch (error) {
    const { code, cause } =
      error instanceof MediaError ? error : { code: 'INTERNAL_ERROR' as const, cause: error };
    return { kind: 'failed', code, detail: cause instanceof Error ? String(cause.stack) : '' };
  }
}

function send(message: WorkerMessage): void {
  process.send?.(message);
}
