import type { Socket } from 'node:net';
import type { Log, RenderBounds } from '../pipeline/ports.ts';
import { FrameReader, ProtocolError, writeFrame } from './frames.ts';
import { parseMessage } from './parse-claims.ts';
import { findWorker, isStopped, killSince, readStartOf } from './process-tree.ts';
import {
  formatCommand,
  GREETING,
  MAX_MESSAGE_HEADER_BYTES,
  type WorkerJob,
  type WorkerMessage,
} from './protocol.ts';
import {
  type FrameSource,
  lostWorker,
  OUT_OF_MEMORY,
  type Outcome,
  RunningJob,
} from './running-job.ts';
import { LOST_WITH_STARTER, type WorkerStart, type WorkerStarter } from './worker-starter.ts';

/** Options of a worker process. */
export interface WorkerProcessOptions extends WorkerStart {
  readonly starter: WorkerStarter;
  readonly frames: FrameSource;
  readonly log: Log;
}

/** Time for a worker to become ready; some 0.2 s on an idle machine, far more on a busy one. */
const START_TIMEOUT_MS = 30_000;

/** Time to read the rest of an ended worker's messages, in milliseconds; its child may hold the channel open. */
const LAST_MESSAGES_MS = 1_000;

/** A render worker: a process, its channel, and at most one job. */
export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #onEnd: (ending: string) => void;
  /** Rejects with what the worker has written, or how it has ended, if it ends before it is ready. */
  readonly ready: Promise<void>;
  #settleReady: (failure?: Error) => void = () => undefined;
  #firstLine: string | undefined;
  #isOutOfMemory = false;
  readonly #frames = new FrameReader({
    maxHeaderBytes: MAX_MESSAGE_HEADER_BYTES,
    maxBodyBytes: () => this.#job?.maxBodyBytes ?? 0,
  });
  readonly #startTimer: NodeJS.Timeout;
  readonly #endProcess: () => void;
  #processId: number | undefined;
  /** Start time of the process, by `readStartOf`. */
  #start = '';
  #channel: Socket | undefined;
  #job: RunningJob | undefined;
  #killReason: string | undefined;
  #isReady = false;
  #hasEnded = false;
  #jobsDone = 0;
  #rssBytes = 0;

  /** @param onEnd called once, and never before the constructor has returned; its `ending` as in `StartEvents` */
  constructor(options: WorkerProcessOptions, onEnd: (ending: string) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = (failure) => (failure === undefined ? resolve() : reject(failure));
    });
    this.#startTimer = setTimeout(() => this.kill('slow start'), START_TIMEOUT_MS);
    const { starter, log } = options;
    this.#endProcess = starter.start(options, {
      onStarted: (processId, channel) => this.#open(processId, channel),
      onLine: (line) => {
        this.#firstLine ??= line;
        // V8 ends its process where its own heap or compiler gets no memory.
        this.#isOutOfMemory ||= /out of memory/i.test(line);
        const details = { processId: this.processId, line };
        // Until the worker is ready, its sandbox may speak, of what does not work here.
        const level = this.#isReady ? 'warn' : 'info';
        log[level](details, 'a render worker has written to its standard error');
      },
      onEnd: (ending) => this.#onExit(ending),
    });
  }

  /** Process id of Node once the worker is ready; before, that of the program that starts Node. */
  get processId(): number | undefined {
    return this.#processId;
  }

  /** Whether the worker became ready, even if it has ended since. */
  get wasReady(): boolean {
    return this.#isReady;
  }

  get isUsable(): boolean {
    return this.#isReady && !this.#hasEnded && this.#killReason === undefined;
  }

  /** Reason for killing the worker: the pool's, or a violation of the protocol. */
  get killReason(): string | undefined {
    return this.#killReason;
  }

  get jobsDone(): number {
    return this.#jobsDone;
  }

  get rssBytes(): number {
    return this.#rssBytes;
  }

  /**
   * Runs one job until its response, its deadline, its abort or the process's end; begins none after the end.
   *
   * @throws MediaError `TRANSFORM_TIMEOUT` at the deadline, `UNPROCESSABLE_MEDIA` if the process violates the protocol
   *   in mid-job; errors of the original's reader; or `signal.reason`
   */
  async run(command: WorkerJob, bounds: RenderBounds): Promise<Outcome> {
    const channel = this.#channel;
    // A caller may have aborted after waiting for a worker; that costs no worker.
    bounds.signal.throwIfAborted();
    if (!this.isUsable || channel === undefined) return { kind: 'not begun' };
    this.#job = new RunningJob(command, bounds, {
      ...{ channel, frames: this.#options.frames },
      isStopped: () => isStopped(this.#processId),
      onOver: (reason, error) => this.kill(reason, error),
    });
    try {
      writeFrame(channel, formatCommand(command));
      return await this.#job.outcome;
    } finally {
      this.#job = undefined;
    }
  }

  /**
   * Ends the process at once.
   *
   * @param failure error of the job; without it, a job that has begun fails with `UNPROCESSABLE_MEDIA`
   */
  kill(reason: string, failure?: unknown): void {
    if (this.#hasEnded || this.#killReason !== undefined) return;
    this.#killReason = reason;
    if (failure !== undefined) this.#job?.fail(failure);
    else if (this.#job?.hasBegun) this.#job.fail(lostWorker(reason));
    else this.#job?.lose(reason);
    this.#endProcess();
    // Unread messages no longer count.
    this.#channel?.destroy();
  }

  #open(processId: number, channel: Socket): void {
    this.#processId = processId;
    this.#channel = channel;
    if (this.#killReason !== undefined) return void channel.destroy();
    channel.on('data', (chunk) => this.#read(chunk));
    // Errors and closing come from a process that is about to end, or must.
    channel.on('error', this.#endProcess);
    channel.on('close', this.#endProcess);
    writeFrame(channel, GREETING);
  }

  #read(chunk: Buffer): void {
    try {
      for (const frame of this.#frames.read(chunk)) this.#onMessage(parseMessage(frame));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.kill(`protocol: ${error.message}`);
    }
  }

  #onMessage(message: WorkerMessage): void {
    const job = this.#job;
    if (message.kind === 'ready' && !this.#isReady) {
      clearTimeout(this.#startTimer);
      if (this.#processId !== undefined) {
        this.#processId = findWorker(this.#processId, this.#options.sandbox.isIsolated);
        this.#start = readStartOf(this.#processId);
      }
      this.#isReady = true;
      this.#settleReady();
    } else if (message.kind === 'begun' && job?.hasBegun === false) {
      job.hasBegun = true;
    } else if (job?.accepts(message)) {
      this.#jobsDone += 1;
      this.#rssBytes = message.rssBytes;
      const isTooLarge = message.kind === 'failed' && message.code === 'MEDIA_TOO_LARGE';
      if (isTooLarge && this.#jobsDone > 1) {
        // Earlier jobs have left their memory in fragments; a fresh worker shows whether its bound suffices.
        job.lose(OUT_OF_MEMORY);
        this.kill('recycled');
      } else job.finish(message);
    } else if (!job?.serves(message)) {
      throw new ProtocolError(`"${message.kind}" out of turn`);
    }
  }

  #onExit(ending: string): void {
    const channel = this.#channel;
    const isLost = ending === LOST_WITH_STARTER;
    // The starter can no longer end the process; if the sandbox binds its life to the starter's, it has already ended.
    if (isLost && this.#processId !== undefined) killSince(this.#processId, this.#start);
    if (isLost || channel === undefined || channel.closed) {
      this.#end(ending);
      return;
    }
    const timer = setTimeout(() => this.#end(ending), LAST_MESSAGES_MS);
    channel.once('close', () => {
      clearTimeout(timer);
      this.#end(ending);
    });
  }

  #end(ending: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#startTimer);
    this.#channel?.destroy();
    this.#job?.lose(this.#isOutOfMemory ? OUT_OF_MEMORY : ending);
    this.#settleReady(new Error(this.#firstLine ?? `ended with ${ending}`));
    this.#onEnd(ending);
  }
}
