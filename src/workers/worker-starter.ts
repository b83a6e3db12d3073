import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import type { WorkingWay } from './confinement/ways.ts';
import type { StarterCommand, StarterMessage } from './starter/messages.ts';

/** How workers are started. */
export interface WorkerStarterOptions {
  /** Path of the compiled entry of the process that starts them. */
  readonly starterFile: string;
  /** Path of the compiled entry of a worker; `undefined`: of the one that renders. */
  readonly workerFile: string | undefined;
  /** All that workers get to know of our environment; no secret. */
  readonly environment: Readonly<Record<string, string>>;
}

/** What one worker is started with. */
export interface WorkerStart {
  readonly way: WorkingWay;
  /** Private writable memory that it may have, in bytes. */
  readonly memoryBytes: number;
}

/** What becomes of a worker; `onEnd` once, and nothing after it. */
export interface StartEvents {
  /**
   * @param processId of the program that becomes the worker
   * @param channel to the worker, which waits for the first frame before it says anything
   */
  readonly onStarted: (processId: number, channel: Socket) => void;
  /** It has written a line to its standard error. */
  readonly onLine: (line: string) => void;
  /** @param ending a signal, an exit status, or why it could not be started */
  readonly onEnd: (ending: string) => void;
}

/** How workers end whose starter has ended: nothing that they did. */
export const LOST_WITH_STARTER = 'the end of the process that starts workers';

/** In MiB; all of its private memory is 11, of which this bounds the most. */
const MAX_HEAP_MEBIBYTES = 32;

/** From when on a starter that does not end a worker is taken to be stopped or stuck, in milliseconds. */
const KILL_TIMEOUT_MS = 10_000;

/**
 * Starts workers by a process that does nothing else (`starter/main.ts`). Where that one ends, so do they, and another
 * is started.
 */
export class WorkerStarter {
  readonly #options: WorkerStarterOptions;
  readonly #starts = new Map<number, StartEvents>();
  #child: ChildProcess | undefined;
  #find: ((way: WorkingWay | Error | undefined) => void) | undefined;
  #lastId = 0;
  #isStopped = false;

  constructor(options: WorkerStarterOptions) {
    this.#options = options;
  }

  /**
   * The ways to start workers that work here, the most confining first; where there is none, one that confines nothing.
   *
   * @throws Error if the starter ends meanwhile: another one would begin with the first way
   */
  async *findWays(): AsyncGenerator<WorkingWay> {
    const child = this.#startedChild();
    for (;;) {
      const way = await new Promise<WorkingWay | Error | undefined>((resolve) => {
        if (this.#child !== child) throw new Error(lostBecause('it was replaced'));
        this.#find = resolve;
        tell(child, { kind: 'find' });
      });
      if (way instanceof Error) throw way;
      if (way === undefined) return;
      yield way;
    }
  }

  /**
   * Starts a worker.
   *
   * @returns kills it at once
   */
  start({ way, memoryBytes }: WorkerStart, events: StartEvents): () => void {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#starts.set(id, events);
    try {
      tell(this.#startedChild(), { kind: 'start', id, by: way.name, memoryBytes });
    } catch (error) {
      queueMicrotask(() => this.#hear({ kind: 'ended', id, ending: String(error) }));
    }
    return () => this.#kill(id);
  }

  /** Ends all workers at once, for good. */
  stop(): void {
    this.#isStopped = true;
    if (this.#child !== undefined) tell(this.#child, { kind: 'stop' });
  }

  #kill(id: number): void {
    const child = this.#child;
    if (child === undefined || !this.#starts.has(id)) return;
    tell(child, { kind: 'kill', id });
    setTimeout(() => {
      if (this.#starts.has(id)) child.kill('SIGKILL');
    }, KILL_TIMEOUT_MS).unref();
  }

  /** @throws Error if the system refuses at once */
  #startedChild(): ChildProcess {
    if (this.#isStopped) throw new Error('The starter of workers is stopped.');
    this.#child ??= this.#fork();
    return this.#child;
  }

  #fork(): ChildProcess {
    const { starterFile, workerFile, environment } = this.#options;
    const child = fork(starterFile, workerFile === undefined ? [] : [workerFile], {
      env: { ...environment },
      execArgv: ['--enable-source-maps', `--max-old-space-size=${MAX_HEAP_MEBIBYTES}`],
      // Its standard input tells it of our end, and nothing else.
      stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
    });
    child.stdin?.on('error', () => undefined);
    // Some failures are thrown (ENOMEM), others are events (EAGAIN).
    child.on('error', (error) => {
      if (child.pid === undefined) this.#lose(child, error.message);
    });
    child.once('exit', (code, signal) => this.#lose(child, signal ?? `status ${code}`));
    child.on('message', (message, handle) => {
      this.#hear(message as StarterMessage, handle instanceof Socket ? handle : undefined);
    });
    return child;
  }

  #hear(message: StarterMessage, channel?: Socket): void {
    if (message.kind === 'found') {
      this.#find?.(message.way);
      return;
    }
    const { id } = message;
    const events = this.#starts.get(id);
    if (message.kind === 'started') {
      if (events === undefined) channel?.destroy();
      else if (channel !== undefined) events.onStarted(message.processId, channel);
      else this.#kill(id); // it has ended while its channel was on its way
    } else if (message.kind === 'line') {
      events?.onLine(message.line);
    } else {
      this.#starts.delete(id);
      events?.onEnd(message.ending);
    }
  }

  /** The process has ended: what it had started can no longer be told to end. */
  #lose(child: ChildProcess, reason: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#find?.(new Error(lostBecause(reason)));
    for (const [id, events] of this.#starts) {
      this.#starts.delete(id);
      events.onEnd(LOST_WITH_STARTER);
    }
  }
}

function lostBecause(reason: string): string {
  return `Workers cannot be started: the process that starts them has ended (${reason}).`;
}

/** Of one that could not be started, an event tells; of one that has ended, too. */
function tell(child: ChildProcess, command: StarterCommand): void {
  if (child.pid !== undefined) child.send(command, () => undefined);
}
