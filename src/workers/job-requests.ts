import { once } from 'node:events';
import type { Socket } from 'node:net';
import { formatCauses, MediaError } from '../contract/errors.ts';
import type { DecodeOrder } from '../formats/video/video-facts.ts';
import type { RangeReader } from '../pipeline/ports.ts';
import { ProtocolError, writeFrame } from './frames.ts';
import {
  FAILURE_CODES,
  type FailureCode,
  formatReply,
  MAX_DETAIL_LENGTH,
  type Reply,
  type WorkerRequest,
} from './protocol.ts';

/** Decodes single frames, each in a process of its own. */
export interface FrameSource {
  /**
   * Yields the pieces of a Y4M file, of `maxFrameBytes` at most in sum.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the frame is damaged or ended the decoder, `OVERLOADED` if no process
   *   could be started; or `signal.reason`
   */
  decode(order: DecodeOrder, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Parts that serve the requests of one job. */
export interface JobRequestsParts {
  readonly original: RangeReader;
  /** `undefined`: this job may not ask for frames. */
  readonly frames: FrameSource | undefined;
  /** Channel to the worker. */
  readonly channel: Socket;
  /** Aborts when the job ends. */
  readonly signal: AbortSignal;
}

/** Most frames that a job may ask for: four candidates, each perhaps with a frame of its alpha. */
const MAX_DECODES = 8;

/**
 * Requests of one job's worker: serves one at a time, within bounds, since the worker may be compromised. A failure
 * that is not the original's, of the storage for example, is the job's own, whatever the worker makes of it.
 */
export class JobRequests {
  readonly #parts: JobRequestsParts;
  /** Whether a request is being served. */
  isBusy = false;
  /** Failure with which the job ends. */
  failure: { readonly error: unknown } | undefined;
  #decodes = 0;

  constructor(parts: JobRequestsParts) {
    this.#parts = parts;
  }

  /** Whether the worker may ask for frames. */
  get mayDecode(): boolean {
    return this.#parts.frames !== undefined;
  }

  /**
   * Begins to serve a request; the reply goes to the worker.
   *
   * @throws ProtocolError if the worker may not ask for this, or not now
   */
  serve(request: WorkerRequest): void {
    if (this.isBusy) throw new ProtocolError('a request during another one');
    const pieces = request.kind === 'read' ? this.#read(request) : this.#decode(request.order);
    this.isBusy = true;
    // It ends with the job, of which the channel may be gone.
    this.#reply(pieces).catch(() => undefined);
  }

  #read({ start, end }: { readonly start: number; readonly end: number }): Pieces {
    const { original, signal } = this.#parts;
    if (end > original.sizeBytes) throw new ProtocolError('a range beyond the original');
    return (async function* () {
      yield await original.read(start, end, signal);
    })();
  }

  #decode(order: DecodeOrder): Pieces {
    const { frames, signal } = this.#parts;
    this.#decodes += 1;
    if (frames === undefined) throw new ProtocolError('a frame out of turn');
    if (this.#decodes > MAX_DECODES) throw new ProtocolError('too many frames');
    return frames.decode(order, signal);
  }

  async #reply(pieces: Pieces): Promise<void> {
    let last: Reply = { kind: 'end' };
    try {
      // Once it has failed, the job only waits for its worker.
      if (this.failure !== undefined) throw this.failure.error;
      for await (const bytes of pieces) await this.#send({ kind: 'bytes', bytes });
    } catch (error) {
      last = { kind: 'refused', code: this.#blame(error), detail: describe(error) };
    }
    // Before the worker can ask again.
    this.isBusy = false;
    await this.#send(last);
  }

  /** Returns what the worker is told of a failure; it may go on without this range or frame. */
  #blame(error: unknown): FailureCode {
    const code = error instanceof MediaError && FAILURE_CODES.find((each) => each === error.code);
    if (code && code !== 'INTERNAL_ERROR') return code;
    this.failure ??= { error };
    return 'INTERNAL_ERROR';
  }

  /** Sends a reply, and waits until the worker has taken most of it: a frame may have 200 MB. */
  async #send(reply: Reply): Promise<void> {
    const { channel, signal } = this.#parts;
    signal.throwIfAborted();
    if (!writeFrame(channel, formatReply(reply))) await once(channel, 'drain', { signal });
  }
}

type Pieces = AsyncIterable<Uint8Array>;

/** Describes a refusal for the log, which gets the words from the worker; a failure of the job is logged as it is. */
function describe(error: unknown): string {
  const isRefusal = error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA';
  return isRefusal ? formatCauses(error.cause).slice(2, MAX_DETAIL_LENGTH) : 'It was refused.';
}
