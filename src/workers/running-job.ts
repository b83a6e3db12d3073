import { once } from 'node:events';
import type { Socket } from 'node:net';
import { formatCauses, MediaError } from '../contract/errors.ts';
import type { DecodeOrder } from '../formats/video/video-facts.ts';
import { Countdown } from '../pipeline/abort.ts';
import { type RangeReader, type RenderBounds, WorkerLost } from '../pipeline/ports.ts';
import { ProtocolError, writeFrame } from './frames.ts';
import { MAX_STREAM_BYTES } from './parse-claims.ts';
import {
  FAILURE_CODES,
  type FailureCode,
  formatReply,
  MAX_DETAIL_LENGTH,
  type Reply,
  type WorkerJob,
  type WorkerMessage,
  type WorkerResponse,
} from './protocol.ts';

/** Decodes single frames, each in a process of its own. */
export interface FrameSource {
  /**
   * Yields the pieces of a Y4M file, of `maxFrameBytes` at most in sum.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the frame is damaged or ended the decoder, `OVERLOADED` if no process
   *   could be started; or `signal.reason`
   */
  decode(order: DecodeOrder, signal: AbortSignal): Pieces;
}

type Pieces = AsyncIterable<Uint8Array>;

/** Outcome of a job; a job that had not begun when its worker ended may be given to another. */
export type Outcome =
  | WorkerResponse
  | { readonly kind: 'not begun' }
  | {
      readonly kind: 'lost';
      /** A signal, an exit status, or why the process could not be started. */
      readonly ending: string;
      /** Time until the deadline, in milliseconds. */
      readonly leftMs: number;
    };

const NOT_BEGUN = { kind: 'not begun' } as const;

/** Worker of a job. */
export interface JobWorker {
  readonly channel: Socket;
  readonly frames: FrameSource;
  /** Whether a signal or a debugger has stopped the process, which is not the fault of its job. */
  readonly isStopped: () => boolean;
  /** Called at the deadline and at the abort, with the error of the job. */
  readonly onOver: (reason: 'deadline' | 'stopped', error: unknown) => void;
}

/** Most frames that a job may ask for: four candidates, each perhaps with a frame of its alpha. */
const MAX_DECODES = 8;

/**
 * A job at a worker, from its command to its outcome. Serves the worker's requests one at a time, within bounds, since
 * the worker may be compromised. A failure that is not the original's, of the storage for example, is the job's own,
 * whatever the worker makes of it.
 */
export class RunningJob {
  /** Settles once; rejects with the error that the job ends with. */
  readonly outcome: Promise<Outcome>;
  hasBegun = false;
  #isOver = false;
  readonly #command: WorkerJob;
  readonly #worker: JobWorker;
  readonly #deadline: Countdown;
  #isServing = false;
  #decodes = 0;
  #failure: { readonly error: unknown } | undefined;
  /** Aborts requests when the job ends. Made with the first one: it costs a twentieth of a small miss, which has none. */
  #end: AbortController | undefined;
  #settle: (how: { readonly outcome: Outcome } | { readonly error: unknown }) => void = () =>
    undefined;

  constructor(command: WorkerJob, { signal, timeoutMs }: RenderBounds, worker: JobWorker) {
    this.#command = command;
    this.#worker = worker;
    const stop = (): void => worker.onOver('stopped', signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#deadline = new Countdown(timeoutMs, () => {
      worker.onOver('deadline', worker.isStopped() ? overloaded('The worker is stopped.') : late());
    });
    this.outcome = new Promise((resolve, reject) => {
      this.#settle = (how) => {
        if (this.#isOver) return;
        this.#isOver = true;
        this.#deadline.stop();
        signal.removeEventListener('abort', stop);
        const failure = this.#failure ?? how;
        if ('error' in failure) reject(failure.error);
        else if ('outcome' in how) resolve(how.outcome);
        this.#end?.abort();
      };
    });
  }

  get #isRunning(): boolean {
    return this.hasBegun && !this.#isOver;
  }

  get maxBodyBytes(): number {
    const { job, original } = this.#command;
    if (this.#isOver || job === undefined) return 0;
    const streamBytes = original instanceof Uint8Array ? 0 : MAX_STREAM_BYTES;
    return Math.max(job.maxResultBytes, streamBytes);
  }

  /** Whether a message is a response that the job may have now. */
  accepts(message: WorkerMessage): message is WorkerResponse {
    const { job } = this.#command;
    if (!this.#isRunning || this.#isServing) return false;
    if (message.kind === 'rendered') return message.body.length <= (job?.maxResultBytes ?? -1);
    return message.kind === 'failed' || (message.kind === 'inspected' && job === undefined);
  }

  /**
   * Begins to serve a message that is a request; the reply goes to the worker.
   *
   * @returns whether it is one; a worker with the whole original may ask for nothing
   * @throws ProtocolError if the worker may not ask for this, or not now
   */
  serves(message: WorkerMessage): boolean {
    const { original } = this.#command;
    if (message.kind !== 'read' && message.kind !== 'decode') return false;
    if (!this.#isRunning || original instanceof Uint8Array) return false;
    if (this.#isServing) throw new ProtocolError('a request during another one');
    this.#end ??= new AbortController();
    const { signal } = this.#end;
    const pieces =
      message.kind === 'read'
        ? this.#read(original, message, signal)
        : this.#decode(message.order, signal);
    this.#isServing = true;
    // It ends with the job, of which the channel may be gone.
    this.#reply(pieces, signal).catch(() => undefined);
    return true;
  }

  finish(outcome: WorkerResponse): void {
    this.#settle({ outcome });
  }

  /** Ends the job because its worker ended by itself. */
  lose(ending: string): void {
    const { leftMs } = this.#deadline;
    const outcome = this.hasBegun ? ({ kind: 'lost', ending, leftMs } as const) : NOT_BEGUN;
    this.#settle({ outcome });
  }

  fail(error: unknown): void {
    this.#settle({ error });
  }

  #read(
    original: RangeReader,
    { start, end }: { readonly start: number; readonly end: number },
    signal: AbortSignal,
  ): Pieces {
    if (end > original.sizeBytes) throw new ProtocolError('a range beyond the original');
    return (async function* () {
      yield await original.read(start, end, signal);
    })();
  }

  #decode(order: DecodeOrder, signal: AbortSignal): Pieces {
    this.#decodes += 1;
    if (this.#command.job === undefined) throw new ProtocolError('a frame out of turn');
    if (this.#decodes > MAX_DECODES) throw new ProtocolError('too many frames');
    return this.#worker.frames.decode(order, signal);
  }

  async #reply(pieces: Pieces, signal: AbortSignal): Promise<void> {
    let last: Reply = { kind: 'end' };
    try {
      // Once it has failed, the job only waits for its worker.
      if (this.#failure !== undefined) throw this.#failure.error;
      for await (const bytes of pieces) await this.#send({ kind: 'bytes', bytes }, signal);
    } catch (error) {
      last = { kind: 'refused', code: this.#blame(error), detail: describe(error) };
    }
    // Before the worker can ask again.
    this.#isServing = false;
    await this.#send(last, signal);
  }

  /** Returns what the worker is told of a failure; it may go on without this range or frame. */
  #blame(error: unknown): FailureCode {
    const code = error instanceof MediaError && FAILURE_CODES.find((each) => each === error.code);
    if (code && code !== 'INTERNAL_ERROR' && code !== 'OVERLOADED') return code;
    this.#failure ??= { error };
    return 'INTERNAL_ERROR';
  }

  /** Sends a reply, and waits until the worker has taken most of it: a frame may have 200 MB. */
  async #send(reply: Reply, signal: AbortSignal): Promise<void> {
    const { channel } = this.#worker;
    signal.throwIfAborted();
    if (!writeFrame(channel, formatReply(reply))) await once(channel, 'drain', { signal });
  }
}

/** Describes a refusal for the log, which gets the words from the worker; a failure of the job is logged as it is. */
function describe(error: unknown): string {
  const isRefusal = error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA';
  return isRefusal ? formatCauses(error.cause).slice(2, MAX_DETAIL_LENGTH) : 'It was refused.';
}

/** Ending of a worker that has used up the memory it may have. */
export const OUT_OF_MEMORY = 'no memory left';

/** Returns the error of a job that has ended its worker. */
export function lostWorker(ending: string): MediaError {
  const cause = new WorkerLost(`The worker ended with ${ending} in mid-job.`);
  const code = ending === OUT_OF_MEMORY ? 'MEDIA_TOO_LARGE' : 'UNPROCESSABLE_MEDIA';
  return new MediaError(code, { cause });
}

/** Returns the error of a job without an available worker. */
export function overloaded(reason: string): MediaError {
  const cause = new Error(reason);
  return new MediaError('OVERLOADED', { cause, bottleneck: 'workers', retryAfterSeconds: 1 });
}

function late(): MediaError {
  const cause = new WorkerLost('The worker was killed at its deadline.');
  return new MediaError('TRANSFORM_TIMEOUT', { cause });
}
