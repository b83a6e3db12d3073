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

/** In MiB; all of its private memory is 11, of which this bounds the most. */
const MAX_HEAP_MEBIBYTES = 32;

/** Starts workers by a process that does nothing else (`starter/main.ts`); if that one ends, so do they, and another is started. */
export class WorkerStarter {
  readonly #options: WorkerStarterOptions;
  readonly #starts = new Map<number, StartEvents>();
  readonly #finds = new Map<number, (way: WorkingWay | Error | undefined) => void>();
  #child: ChildProcess | undefined;
  #lastId = 0;

  constructor(options: WorkerStarterOptions) {
    this.#options = options;
  }

  /**
   * The ways to start workers that work here, the most confining first; the last one confines nothing.
   *
   * @throws Error if the starter ends meanwhile
   */
  async *findWays(): AsyncGenerator<WorkingWay> {
    for (let place = 0; ; place += 1) {
      const way = await new Promise<WorkingWay | Error | undefined>((resolve) => {
        this.#finds.set(place, resolve);
        this.#ask({ kind: 'find', place });
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
      this.#ask({ kind: 'start', id, by: way.name, memoryBytes });
    } catch (error) {
      queueMicrotask(() => this.#hear({ kind: 'ended', id, ending: String(error) }));
    }
    return () => {
      if (this.#starts.has(id)) this.#ask({ kind: 'kill', id });
    };
  }

  /** Ends all workers at once, for good. */
  stop(): void {
    if (this.#child !== undefined) this.#ask({ kind: 'stop' });
  }

  #ask(command: StarterCommand): void {
    this.#child ??= this.#fork();
    this.#child.send(command, () => undefined); // where it has ended, `exit` says so
  }

  #fork(): ChildProcess {
    const { starterFile, workerFile, environment } = this.#options;
    const child = fork(starterFile, workerFile === undefined ? [] : [workerFile], {
      env: { ...environment },
      execArgv: ['--enable-source-maps', `--max-old-space-size=${MAX_HEAP_MEBIBYTES}`],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    // Some failures of `fork` are thrown (ENOMEM), others are events (EAGAIN).
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
      this.#finds.get(message.place)?.(message.way);
      this.#finds.delete(message.place);
      return;
    }
    const { id } = message;
    const events = this.#starts.get(id);
    if (message.kind === 'started') {
      if (channel === undefined)
        this.#ask({ kind: 'kill', id }); // no descriptor was left for it
      else if (events === undefined) channel.destroy();
      else events.onStarted(message.processId, channel);
    } else if (message.kind === 'line') {
      events?.onLine(message.line);
    } else {
      this.#starts.delete(id);
      events?.onEnd(message.ending);
    }
  }

  /** The process has ended, and with it all that it had started. */
  #lose(child: ChildProcess, ending: string): void {
    if (this.#child === child) this.#child = undefined;
    const reason = `the end of the process that starts workers (${ending})`;
    for (const [place, resolve] of this.#finds) {
      this.#finds.delete(place);
      resolve(new Error(`Workers cannot be started: ${reason}.`));
    }
    for (const [id, events] of this.#starts) {
      this.#starts.delete(id);
      events.onEnd(reason);
    }
  }
}
