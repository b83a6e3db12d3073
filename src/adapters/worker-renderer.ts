import { type ChildProcess, fork } from 'node:child_process';
import { MediaError } from '../media/errors.ts';
import type { RenderJob } from '../pipeline/plan.ts';
import type { Log, Renderer } from '../pipeline/ports.ts';
import type { RenderCommand, WorkerMessage } from '../pipeline/worker-protocol.ts';

interface WorkerRendererOptions {
  /** Compiled entry of the worker process. */
  readonly workerFile: URL;
  /** How many processes to keep. */
  readonly workers: number;
  /** Time for one job, in milliseconds; then its process is killed. */
  readonly timeoutMs: number;
  /** All that a worker gets to know of our environment; no secret. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: Log;
}

/** Wait before a worker that failed to start is started again; doubled each time, in milliseconds. */
const FIRST_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 5_000;

/** Time for a replacement to be ready; a start takes some 0.2 s on an idle machine. */
const START_TIMEOUT_MS = 10_000;

/** How many workers may die under a job before it has begun. */
const MAX_ATTEMPTS = 3;

type Answer = Extract<WorkerMessage, { readonly kind: 'rendered' | 'failed' }>;
type NotBegun = { readonly kind: 'not begun' };

/**
 * Renders in a pool of pre-forked processes, one job each at a time. A job over its deadline is
 * killed with its process (sharp's own timeout stops neither libimagequant nor libaom); a process
 * that dies takes its own job with it and is replaced.
 */
export class WorkerRenderer implements Renderer {
  readonly #options: WorkerRendererOptions;
  readonly #processes = new Set<ChildProcess>();
  readonly #idle: ChildProcess[] = [];
  readonly #waiting: ((worker: ChildProcess) => void)[] = [];
  readonly #restarts = new Set<NodeJS.Timeout>();
  #failedStarts = 0;
  #isStopped = false;

  constructor(options: WorkerRendererOptions) {
    this.#options = options;
  }

  /**
   * Forks the workers and waits until all are ready.
   *
   * @throws Error if one cannot start
   */
  async start(): Promise<void> {
    const starts = Array.from({ length: this.#options.workers }, () => this.#fork());
    await Promise.all(starts);
  }

  /** Ends all workers at once, busy ones too. */
  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    for (const worker of this.#processes) worker.kill('SIGKILL');
  }

  /** Process ids of the living workers; for tests and diagnostics. */
  get processIds(): readonly number[] {
    return [...this.#processes].flatMap(({ pid }) => pid ?? []);
  }

  async render(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
    const answer = await this.#runOnLiving({ original, job });
    if (answer.kind === 'rendered') return answer.body;
    const cause = new Error(answer.detail);
    // A worker's unknown failure is ours: not a MediaError, so that it is logged and answered as 500.
    throw answer.code === 'INTERNAL_ERROR' ? cause : new MediaError(answer.code, { cause });
  }

  /** A worker may have died while it was idle; that is no fault of the job, which takes another. */
  async #runOnLiving(command: RenderCommand): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#run(await this.#take(), command);
      if (outcome.kind !== 'not begun') return outcome;
      if (attempt === MAX_ATTEMPTS) throw new Error('No render worker lived to begin the job.');
    }
  }

  /** One job, until its answer, its deadline or its worker's end. */
  #run(worker: ChildProcess, command: RenderCommand): Promise<Answer | NotBegun> {
    return new Promise((resolve, reject) => {
      let hasBegun = false;
      const finish = (): void => {
        clearTimeout(timer);
        worker.off('message', onMessage);
        worker.off('exit', onExit);
      };
      const onMessage = (message: WorkerMessage): void => {
        if (message.kind === 'ready') return;
        if (message.kind === 'begun') {
          hasBegun = true;
          return;
        }
        finish();
        this.#release(worker);
        resolve(message);
      };
      const onExit = (code: number | null, signal: string | null): void => {
        finish();
        const cause = new Error(`The worker ended with ${signal ?? `status ${code}`} in mid-job.`);
        if (hasBegun) reject(new MediaError('UNPROCESSABLE_MEDIA', { cause }));
        else resolve({ kind: 'not begun' });
      };
      const timer = setTimeout(() => {
        finish();
        worker.kill('SIGKILL');
        reject(new MediaError('TRANSFORM_TIMEOUT'));
      }, this.#options.timeoutMs);
      worker.on('message', onMessage);
      worker.on('exit', onExit);
      worker.send(command, (error) => {
        // The channel is closed only by the worker's end, which `onExit` hears of by itself.
        if (error !== null) worker.kill('SIGKILL');
      });
    });
  }

  /**
   * A worker that is idle, or the next one to be: callers hold a slot, so one is about to be ready,
   * unless none can be started.
   *
   * @throws MediaError `OVERLOADED` if none is ready after the time that a start may take
   */
  #take(): Promise<ChildProcess> {
    const worker = this.#idle.pop();
    if (worker !== undefined) return Promise.resolve(worker);
    return new Promise((resolve, reject) => {
      const take = (ready: ChildProcess): void => {
        clearTimeout(timer);
        resolve(ready);
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        const cause = new Error('No render worker became ready in time.');
        reject(new MediaError('OVERLOADED', { cause, retryAfterSeconds: 1 }));
      }, START_TIMEOUT_MS);
      this.#waiting.push(take);
    });
  }

  #release(worker: ChildProcess): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(worker);
    else next(worker);
  }

  /** Starts one worker; resolved when it is ready, rejected if it ends before. */
  #fork(): Promise<void> {
    const worker = fork(this.#options.workerFile, {
      serialization: 'advanced',
      env: {
        ...this.#options.environment,
        // One render at a time needs few threads; glibc's 8 arenas per core only fragment memory.
        UV_THREADPOOL_SIZE: '2',
        MALLOC_ARENA_MAX: '2',
        // libvips' warnings are no errors (spec §3) and would reach the terminal as bare text.
        VIPS_WARNING: '0',
      },
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#processes.add(worker);
    return new Promise((resolve, reject) => {
      let isReady = false;
      const onEnd = (ending: string): void => {
        if (!this.#processes.delete(worker)) return;
        const position = this.#idle.indexOf(worker);
        if (position >= 0) this.#idle.splice(position, 1);
        if (!isReady) {
          this.#failedStarts += 1;
          reject(new Error(`A render worker ended with ${ending} at its start.`));
        }
        if (!this.#isStopped) this.#replace(isReady, ending);
      };
      worker.once('message', () => {
        isReady = true;
        this.#failedStarts = 0;
        this.#release(worker);
        resolve();
      });
      worker.once('exit', (code, signal) => onEnd(signal ?? `status ${code}`));
      // What could not be spawned at all (no memory, no process ids left) never exits.
      worker.on('error', (error) => {
        if (worker.pid === undefined) onEnd(error.message);
      });
    });
  }

  #replace(wasReady: boolean, ending: string): void {
    const delayMs = wasReady
      ? 0
      : Math.min(FIRST_RESTART_DELAY_MS * 2 ** this.#failedStarts, MAX_RESTART_DELAY_MS);
    this.#options.log.warn({ ending, delayMs }, 'a render worker has ended and is replaced');
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      this.#fork().catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'a render worker cannot start');
      });
    }, delayMs);
    this.#restarts.add(timer);
  }
}
