import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import type { WorkingWay } from './confinement/ways.ts';
import type { StarterCommand, StarterMessage } from './starter/messages.ts';

/** Options of the starter. */
export interface WorkerStarterOptions {
  /** Path of the compiled entry of the process that starts workers. */
  readonly starterFile: string;
  /** Path of the compiled entry of a worker; `undefined`: the render worker. */
  readonly workerFile: string | undefined;
  /** Whole environment of the workers; without secrets. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Parameters of one worker's start. */
export interface WorkerStart {
  readonly way: WorkingWay;
  /** Bound of the worker's private writable memory, in bytes. */
  readonly memoryBytes: number;
}

/** Callbacks about a worker; `onEnd` is called once, as the last one. */
export interface StartEvents {
  /**
   * @param processId of the program that becomes the worker
   * @param channel to the worker, which sends nothing before its first frame
   */
  readonly onStarted: (processId: number, channel: Socket) => void;
  /** Called for each line of the worker's standard error. */
  readonly onLine: (line: string) => void;
  /** @param ending a signal, an exit status, or why the worker could not be started */
  readonly onEnd: (ending: string) => void;
}

/** Ending of workers whose starter has ended, which is not their fault. */
export const LOST_WITH_STARTER = 'the end of the process that starts workers';

/** Heap in MiB; the process has 11 MiB of private memory in all, most of which this bounds. */
const MAX_HEAP_MEBIBYTES = 32;

/**
 * Time after which a starter that does not report the end of a killed worker counts as stopped or stuck, in
 * milliseconds: if the worker does not end, the starter reports that earlier.
 */
const KILL_TIMEOUT_MS = 10_000;

/**
 * Client of the process that starts workers (`starter/main.ts`). If the process ends, so do its workers, and another
 * one is started.
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
   * Yields the sandboxes that this host supports, strongest first; if none works, one that confines nothing.
   *
   * @throws Error if the starter ends meanwhile: another one would begin with the first sandbox
   */
  async *findWays(): AsyncGenerator<WorkingWay> {
    const child = this.#startedChild();
    for (;;) {
      const way = await new Promise<WorkingWay | Error | undefined>((resolve) => {
        if (this.#child !== child) throw new Error(lostBecause('it was replaced'));
        this.#find = resolve;
        send(child, { kind: 'find' });
      });
      if (way instanceof Error) throw way;
      if (way === undefined) return;
      yield way;
    }
  }

  /**
   * Starts a worker.
   *
   * @returns a function that kills the worker at once
   */
  start({ way, memoryBytes }: WorkerStart, events: StartEvents): () => void {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#starts.set(id, events);
    try {
      send(this.#startedChild(), { kind: 'start', id, by: way.name, memoryBytes });
    } catch (error) {
      queueMicrotask(() => this.#onMessage({ kind: 'ended', id, ending: String(error) }));
    }
    return () => this.#kill(id);
  }

  /** Ends all workers at once, for good. */
  stop(): void {
    this.#isStopped = true;
    if (this.#child !== undefined) send(this.#child, { kind: 'stop' });
  }

  #kill(id: number): void {
    const child = this.#child;
    if (child === undefined || !this.#starts.has(id)) return;
    send(child, { kind: 'kill', id });
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
      // Standard input only signals our end to the starter.
      stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
    });
    child.stdin?.on('error', () => undefined);
    // Node throws some failures (ENOMEM), and emits others as events (EAGAIN).
    child.on('error', (error) => {
      if (child.pid === undefined) this.#lose(child, error.message);
    });
    child.once('exit', (code, signal) => this.#lose(child, signal ?? `status ${code}`));
    child.on('message', (message, handle) => {
      this.#onMessage(message as StarterMessage, handle instanceof Socket ? handle : undefined);
    });
    return child;
  }

  #onMessage(message: StarterMessage, channel?: Socket): void {
    if (message.kind === 'found') {
      this.#find?.(message.way);
      return;
    }
    const { id } = message;
    const events = this.#starts.get(id);
    if (message.kind === 'started') {
      if (events === undefined) channel?.destroy();
      else if (channel !== undefined) events.onStarted(message.processId, channel);
      else this.#kill(id); // the worker has ended while its channel was in transfer
    } else if (message.kind === 'line') {
      events?.onLine(message.line);
    } else {
      this.#starts.delete(id);
      events?.onEnd(message.ending);
    }
  }

  /** Handles the end of the process, whose workers can no longer be ended. */
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

/** Sends a command; failed starts and the end of the process are reported by events. */
function send(child: ChildProcess, command: StarterCommand): void {
  if (child.pid !== undefined) child.send(command, () => undefined);
}
