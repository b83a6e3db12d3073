import type { Socket } from 'node:net';
import { MediaError } from '../contract/errors.ts';
import { type RenderBounds, WorkerLost } from '../pipeline/ports.ts';
import { type FrameSource, JobRequests } from './job-requests.ts';
import { MAX_STREAM_BYTES } from './parse-claims.ts';
import type { WorkerJob, WorkerMessage, WorkerResponse } from './protocol.ts';

/** Outcome of a job; a job that had not begun when its worker ended may be given to another. */
export type Outcome =
  | WorkerResponse
  | { readonly kind: 'not begun' }
  | {
      /** The worker has ended in mid-job. */
      readonly kind: 'lost';
      /** A signal, an exit status, or why the process could not be started. */
      readonly ending: string;
    };

/** Worker of a job. */
export interface JobWorker {
  readonly channel: Socket;
  readonly frames: FrameSource;
  /** Called at the deadline and at the abort, with the error of the job. */
  readonly onOver: (reason: 'deadline' | 'stopped', error: unknown) => void;
}

/** A job at a worker, from its command to its outcome. */
export class RunningJob {
  /** Settles once; rejects with the error that the job ends with. */
  readonly outcome: Promise<Outcome>;
  hasBegun = false;
  #isOver = false;
  readonly #command: WorkerJob;
  /** `undefined`: the worker has the whole original, and may ask for nothing. */
  readonly #requests: JobRequests | undefined;
  #settle: (how: { readonly outcome: Outcome } | { readonly error: unknown }) => void = () =>
    undefined;

  constructor(command: WorkerJob, { signal, timeoutMs }: RenderBounds, worker: JobWorker) {
    const { original, job } = command;
    const { channel } = worker;
    this.#command = command;
    let ended: AbortController | undefined;
    if (!(original instanceof Uint8Array)) {
      const frames = job && worker.frames;
      ended = new AbortController();
      this.#requests = new JobRequests({ original, frames, channel, signal: ended.signal });
    }
    const stop = (): void => worker.onOver('stopped', signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const timer = setTimeout(() => {
      const cause = new WorkerLost('The worker was killed at its deadline.');
      worker.onOver('deadline', new MediaError('TRANSFORM_TIMEOUT', { cause }));
    }, timeoutMs);
    this.outcome = new Promise((resolve, reject) => {
      this.#settle = (how) => {
        if (this.#isOver) return;
        this.#isOver = true;
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        const failure = this.#requests?.failure ?? how;
        if ('error' in failure) reject(failure.error);
        else if ('outcome' in how) resolve(how.outcome);
        ended?.abort();
      };
    });
  }

  get #isRunning(): boolean {
    return this.hasBegun && !this.#isOver;
  }

  /** Bound of the bodies of the worker's messages. */
  get maxBodyBytes(): number {
    if (this.#isOver) return 0;
    const maxResultBytes = this.#command.job?.maxResultBytes ?? 0;
    return Math.max(maxResultBytes, this.#requests?.mayDecode ? MAX_STREAM_BYTES : 0);
  }

  /** Whether a message is a response that the job may have now. */
  accepts(message: WorkerMessage): message is WorkerResponse {
    const { job } = this.#command;
    if (!this.#isRunning || this.#requests?.isBusy) return false;
    if (message.kind === 'rendered') return message.body.length <= (job?.maxResultBytes ?? -1);
    return message.kind === 'failed' || (message.kind === 'inspected' && job === undefined);
  }

  /**
   * Begins to serve a message that is a request.
   *
   * @returns whether it is one
   * @throws ProtocolError if the worker may not ask for this, or not now
   */
  serves(message: WorkerMessage): boolean {
    if (message.kind !== 'read' && message.kind !== 'decode') return false;
    if (!this.#isRunning || this.#requests === undefined) return false;
    this.#requests.serve(message);
    return true;
  }

  finish(outcome: Outcome): void {
    this.#settle({ outcome });
  }

  fail(error: unknown): void {
    this.#settle({ error });
  }
}

/** Returns the error of a job that has ended its worker. */
export function lostWorker(ending: string): MediaError {
  const cause = new WorkerLost(`The worker ended with ${ending} in mid-job.`);
  return new MediaError('UNPROCESSABLE_MEDIA', { cause });
}
