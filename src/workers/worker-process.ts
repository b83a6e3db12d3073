import type { Socket } from 'node:net';
import { MediaError } from '../contract/errors.ts';
import { type Log, WorkerLost } from '../pipeline/ports.ts';
import { FrameReader, ProtocolError, writeFrame } from './frames.ts';
import { type JobTimes, watchJobTime } from './job-time.ts';
import { findWorker, killSince, lowerPriority, readStartOf } from './process-tree.ts';
import {
  formatCommand,
  GREETING,
  MAX_MESSAGE_HEADER_BYTES,
  parseMessage,
  type RenderCommand,
  type WorkerMessage,
  type WorkerResponse,
} from './protocol.ts';
import { lostWorker } from './worker-failures.ts';
import { LOST_WITH_STARTER, type WorkerStart, type WorkerStarter } from './worker-starter.ts';

/** How a worker process is made. */
export interface WorkerProcessOptions extends WorkerStart {
  readonly starter: WorkerStarter;
  /** From when it is ready, 0 to 19. */
  readonly niceness: number;
  readonly log: Log;
}

/** Called by a worker process; each at most once, and never before it is constructed. */
export interface WorkerProcessEvents {
  readonly onReady: () => void;
  /** @param ending a signal, an exit status, or why it could not be started */
  readonly onEnd: (ending: string) => void;
}

/** Bounds of one job. */
export interface JobBounds extends JobTimes {
  /** Aborts when no client wants the result any more; then the process is killed. */
  readonly signal: AbortSignal;
}

/** What became of a job; one that has not begun when its worker ended may be given to another. */
export type Outcome =
  | WorkerResponse
  | { readonly kind: 'not begun' }
  | {
      /** The worker has ended, in mid-job. */
      readonly kind: 'lost';
      /** As of `onEnd`. */
      readonly ending: string;
    };

interface RunningJob {
  readonly maxResultBytes: number;
  hasBegun: boolean;
  readonly finish: (outcome: Outcome) => void;
  readonly fail: (error: unknown) => void;
}

/** Time for a worker to be ready; some 0.2 s on an idle machine, far more beside busy ones. */
const START_TIMEOUT_MS = 30_000;

/** Time for the rest of an ended worker's messages to be read; a child of its own may hold the channel open. */
const LAST_MESSAGES_MS = 1_000;

/** One render worker: a process, the channel to it, and the one job it may have. */
export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #events: WorkerProcessEvents;
  readonly #frames = new FrameReader({
    maxHeaderBytes: MAX_MESSAGE_HEADER_BYTES,
    maxBodyBytes: () => this.#job?.maxResultBytes ?? 0,
  });
  readonly #startTimer: NodeJS.Timeout;
  readonly #endProcess: () => void;
  #processId: number | undefined;
  /** When the process was started, as `readStartOf`. */
  #start = '';
  #channel: Socket | undefined;
  #job: RunningJob | undefined;
  #killReason: string | undefined;
  #isReady = false;
  #hasEnded = false;
  #jobsDone = 0;
  #rssBytes = 0;

  constructor(options: WorkerProcessOptions, events: WorkerProcessEvents) {
    this.#options = options;
    this.#events = events;
    this.#startTimer = setTimeout(() => this.kill('slow start'), START_TIMEOUT_MS);
    const { starter, log } = options;
    this.#endProcess = starter.start(options, {
      onStarted: (processId, channel) => this.#open(processId, channel),
      onLine: (line) => {
        const details = { processId: this.processId, line };
        log.warn(details, 'a render worker has written to its standard error');
      },
      onEnd: (ending) => this.#onExit(ending),
    });
  }

  /** Of Node itself, from when it is ready on; until then, of the program that was started to become it. */
  get processId(): number | undefined {
    return this.#processId;
  }

  /** Whether it became ready, whatever became of it then. */
  get wasReady(): boolean {
    return this.#isReady;
  }

  /** Whether it can be given a job, as far as is known. */
  get isUsable(): boolean {
    return this.#isReady && !this.#hasEnded && this.#killReason === undefined;
  }

  /** Why it was killed: a reason of the pool's, or what it did against the protocol. */
  get killReason(): string | undefined {
    return this.#killReason;
  }

  get jobsDone(): number {
    return this.#jobsDone;
  }

  /** Its resident memory after its last job, as it says. */
  get rssBytes(): number {
    return this.#rssBytes;
  }

  /**
   * Runs one job, until its response, its deadline, its stop or the process's end; none where that has come.
   *
   * @throws MediaError `TRANSFORM_TIMEOUT` at the deadline, `UNPROCESSABLE_MEDIA` if the process breaks the protocol
   *   in mid-job; or `signal.reason`
   */
  run(command: RenderCommand, { signal, ...times }: JobBounds): Promise<Outcome> {
    // Between the wait for a worker and this, a caller may have gone; that costs no worker.
    if (signal.aborted) return Promise.reject(signal.reason);
    if (!this.isUsable) return Promise.resolve({ kind: 'not begun' });
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        stopWatch();
        signal.removeEventListener('abort', stop);
        this.#job = undefined;
        how();
      };
      const stop = (): void => this.kill('stopped', signal.reason);
      const stopWatch = watchJobTime(this.#processId, times, () => {
        const cause = new WorkerLost('The worker was killed at its deadline.');
        this.kill('deadline', new MediaError('TRANSFORM_TIMEOUT', { cause }));
      });
      signal.addEventListener('abort', stop, { once: true });
      this.#job = {
        maxResultBytes: command.job.maxResultBytes,
        hasBegun: false,
        finish: (outcome) => settle(() => resolve(outcome)),
        fail: (error) => settle(() => reject(error)),
      };
      if (this.#channel !== undefined) writeFrame(this.#channel, formatCommand(command));
    });
  }

  /**
   * Ends the process at once.
   *
   * @param failure what its job fails with; without, one that has begun is `UNPROCESSABLE_MEDIA`
   */
  kill(reason: string, failure?: unknown): void {
    if (this.#hasEnded || this.#killReason !== undefined) return;
    this.#killReason = reason;
    if (failure !== undefined) this.#job?.fail(failure);
    else if (this.#job?.hasBegun) this.#job.fail(lostWorker(reason));
    else this.#loseJob(reason);
    this.#endProcess();
    // Nothing of what it said and was not read yet counts any more.
    this.#channel?.destroy();
  }

  #open(processId: number, channel: Socket): void {
    this.#processId = processId;
    this.#channel = channel;
    if (this.#killReason !== undefined) return void channel.destroy();
    channel.on('data', (chunk) => this.#read(chunk));
    // Of a process that is about to end, or ought to.
    channel.on('error', this.#endProcess);
    channel.on('close', this.#endProcess);
    writeFrame(channel, GREETING);
  }

  #read(chunk: Buffer): void {
    try {
      for (const frame of this.#frames.read(chunk)) this.#hear(parseMessage(frame));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.kill(`protocol: ${error.message}`);
    }
  }

  #hear(message: WorkerMessage): void {
    const job = this.#job;
    if (message.kind === 'ready' && !this.#isReady) {
      clearTimeout(this.#startTimer);
      const { niceness, way } = this.#options;
      if (this.#processId !== undefined) {
        this.#processId = findWorker(this.#processId, way.processes === 'own');
        lowerPriority(this.#processId, niceness);
        this.#start = readStartOf(this.#processId);
      }
      this.#isReady = true;
      this.#events.onReady();
    } else if (message.kind === 'begun' && job?.hasBegun === false) {
      job.hasBegun = true;
    } else if ((message.kind === 'rendered' || message.kind === 'failed') && job?.hasBegun) {
      this.#jobsDone += 1;
      this.#rssBytes = message.rssBytes;
      job.finish(message);
    } else {
      throw new ProtocolError(`"${message.kind}" out of turn`);
    }
  }

  /** What it has still said is in its channel, so that comes first. */
  #onExit(ending: string): void {
    const channel = this.#channel;
    const isLost = ending === LOST_WITH_STARTER;
    // What would have ended it cannot; where its start has bound its life to that, it has ended already.
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
    this.#loseJob(ending);
    this.#events.onEnd(ending);
  }

  /** It has ended without being told to. */
  #loseJob(ending: string): void {
    this.#job?.finish(this.#job.hasBegun ? { kind: 'lost', ending } : { kind: 'not begun' });
  }
}
