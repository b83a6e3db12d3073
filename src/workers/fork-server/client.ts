import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { WorkerProgram } from '../confinement/program-files.ts';
import { listSandboxes, type Sandbox } from '../confinement/sandbox.ts';
import { describeEnding, NO_END } from '../process-tree.ts';
import type { ForkServerCommand, ForkServerMessage } from './main.ts';

export interface ProgramStart {
  readonly sandbox: Sandbox;
  readonly memoryBytes: number;
}

export interface WorkerStart extends ProgramStart {
  /** Niceness of a ready worker, 0 to 19. */
  readonly niceness: number;
}

/** Callbacks of a started process; `onEnd` is called once, as the last. */
export interface StartEvents {
  /** @param processId of the program that later becomes the worker */
  readonly onStarted: (processId: number, channel: Socket) => void;
  readonly onLine: (line: string) => void;
  /** @param ending a signal, an exit status, or why the start failed */
  readonly onEnd: (ending: string) => void;
}

/** Ending of workers whose fork server has ended. */
export const LOST_WITH_FORK_SERVER = 'the fork server exited';

/** Maximum heap of the fork server in MiB: most of its private memory. */
const HEAP_MEBIBYTES = 32;

/** Node's arguments for a worker; images are outside of the heap. */
const WORKER_FLAGS = ['--enable-source-maps', '--max-old-space-size=128'];

/** Time in milliseconds after which a fork server counts as stuck if it does not report the end of a killed worker. */
const KILL_TIMEOUT_MS = 10_000;

/**
 * User ids of workers if root starts the service: with its own id, a worker can neither signal another nor read its
 * memory. Debian and systemd do not use the range ("Users, Groups, UIDs and GIDs"); container ids end at 65535.
 */
const FIRST_USER_ID = 60_578;
const USER_IDS = 606;

interface Start {
  readonly events: StartEvents;
  userId: number | undefined;
}

/** Client of the fork server (`main.ts`). If the server ends, its workers end too, and the next start forks another. */
export class ForkServer {
  readonly #file: string;
  readonly #program: WorkerProgram;
  readonly #starts = new Map<number, Start>();
  readonly #usedUserIds = new Set<number>();
  // Random, since another service on this machine may use the same range.
  #lastUser = Math.floor(Math.random() * USER_IDS);
  #lastId = 0;
  #child: ChildProcess | undefined;
  #isStopped = false;
  lossReason = '';

  /**
   * @param file path of the compiled `main.ts`
   * @param environment of the fork server and all its children
   * @param workerFile by default, the bundle next to `file`
   */
  constructor(
    file: string,
    environment: Readonly<Record<string, string>>,
    workerFile: string = join(file, '../../child/main.js'),
  ) {
    this.#file = file;
    this.#program = { workerFile, environment };
  }

  listSandboxes(refusals: string[]): AsyncGenerator<Sandbox> {
    return listSandboxes(this.#program, refusals);
  }

  /** Returns a function that kills the process. @param isGroup whether it leads a process group, killed with it */
  startProgram(
    { sandbox, memoryBytes }: ProgramStart,
    args: readonly string[],
    events: StartEvents,
    isGroup = false,
  ): () => void {
    this.#lastId += 1;
    const id = this.#lastId;
    const start: Start = { events, userId: undefined };
    this.#starts.set(id, start);
    try {
      if (sandbox.hasOwnUsers) start.userId = this.#acquireUserId();
      const { command, words, inputs } = sandbox.compose(start.userId, memoryBytes);
      const { isIsolated } = sandbox;
      send(this.#requireChild(), {
        kind: 'start',
        id,
        command,
        args: [...words, ...args],
        inputs,
        isIsolated,
        isGroup,
      });
    } catch (error) {
      queueMicrotask(() => this.#onMessage({ kind: 'ended', id, ending: String(error) }));
    }
    return () => this.#kill(id);
  }

  start(start: WorkerStart, events: StartEvents): () => void {
    const args = [...WORKER_FLAGS, this.#program.workerFile, String(start.niceness)];
    return this.startProgram(start, args, events);
  }

  stop(): void {
    this.#isStopped = true;
    this.#child?.stdin?.destroy();
  }

  #kill(id: number): void {
    const child = this.#child;
    if (child === undefined || !this.#starts.has(id)) return;
    send(child, { kind: 'kill', id });
    setTimeout(() => {
      if (this.#starts.has(id)) child.kill('SIGKILL');
    }, KILL_TIMEOUT_MS).unref();
  }

  #acquireUserId(): number {
    if (this.#usedUserIds.size === USER_IDS) throw new Error('All user ids are in use.');
    do this.#lastUser = (this.#lastUser + 1) % USER_IDS;
    while (this.#usedUserIds.has(FIRST_USER_ID + this.#lastUser));
    const userId = FIRST_USER_ID + this.#lastUser;
    this.#usedUserIds.add(userId);
    return userId;
  }

  /** @throws Error if the system refuses immediately */
  #requireChild(): ChildProcess {
    if (this.#isStopped) throw new Error('The fork server is stopped.');
    this.#child ??= this.#fork();
    return this.#child;
  }

  #fork(): ChildProcess {
    const child = fork(this.#file, [], {
      env: { ...this.#program.environment },
      execArgv: ['--enable-source-maps', `--max-old-space-size=${HEAP_MEBIBYTES}`],
      // The fork server notices our end by its standard input.
      stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    child.stdin?.on('error', () => undefined);
    // Node throws some failures (ENOMEM), and emits others as events (EAGAIN).
    child.on('error', (error) => {
      if (child.pid === undefined) this.#lose(child, error.message);
    });
    child.once('exit', (code, signal) => this.#lose(child, describeEnding(code, signal)));
    child.on('message', (message, handle) => {
      this.#onMessage(message as ForkServerMessage, handle instanceof Socket ? handle : undefined);
    });
    return child;
  }

  #onMessage(message: ForkServerMessage, channel?: Socket): void {
    const { id } = message;
    const start = this.#starts.get(id);
    if (message.kind === 'started') {
      channel?.on('error', () => undefined);
      if (start === undefined) channel?.destroy();
      else if (channel === undefined)
        this.#kill(id); // it has ended while its channel was in transfer
      else start.events.onStarted(message.processId, channel);
    } else if (message.kind === 'line') {
      start?.events.onLine(message.line);
    } else {
      this.#end(id, message.ending);
    }
  }

  #end(id: number, ending: string): void {
    const start = this.#starts.get(id);
    if (start === undefined) return;
    this.#starts.delete(id);
    if (start.userId !== undefined && ending !== NO_END) this.#usedUserIds.delete(start.userId);
    start.events.onEnd(ending);
  }

  /** Reports the ends of all workers: the fork server can no longer do so. */
  #lose(child: ChildProcess, reason: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.lossReason = reason;
    for (const id of [...this.#starts.keys()]) this.#end(id, LOST_WITH_FORK_SERVER);
  }
}

/** Sends a command; failures arrive as events. */
function send(child: ChildProcess, command: ForkServerCommand): void {
  if (child.pid !== undefined) child.send(command, () => undefined);
}
