import type { Socket } from 'node:net';
import { Countdown, unlessAborted } from '../pipeline/abort.ts';
import type { Log, RenderBounds } from '../pipeline/ports.ts';
import { type ForkServer, LOST_WITH_FORK_SERVER, type WorkerStart } from './fork-server/client.ts';
import { Inbox } from './inbox.ts';
import {
  type FrameSource,
  isResponseTo,
  type JobProgress,
  maxBodyBytesOf,
  openRequest,
  reply,
} from './job-requests.ts';
import { type Packet, PacketReader, ProtocolError, writePacket } from './packets.ts';
import { parseMessage } from './parse-message.ts';
import { findWorker, isStopped, killIfSameProcess, readStartTime } from './process-tree.ts';
import {
  formatCommand,
  MAX_MESSAGE_HEADER_BYTES,
  type WorkerJob,
  type WorkerMessage,
  type WorkerResponse,
} from './protocol.ts';
import {
  deadlineError,
  type KillReason,
  OUT_OF_MEMORY,
  toJobError,
  WorkerExited,
} from './worker-errors.ts';

/** Time for a worker to become ready, in milliseconds; on an idle machine it takes 0.2 s. */
const START_TIMEOUT_MS = 30_000;

/** Time to read the last messages of an ended worker, in milliseconds: its child may keep the channel open. */
const LAST_MESSAGES_MS = 1_000;

export class WorkerProcess {
  readonly #frames: FrameSource;
  readonly #log: Log;
  /** Rejects with the worker's first line of standard error, or its ending, if it ends first. */
  readonly ready: Promise<void>;
  readonly #endProcess: () => void;
  readonly #inbox = new Inbox<WorkerMessage>();
  readonly #lines: string[] = [];
  /** `startTime` is empty until the worker is ready. */
  #spawned:
    | { readonly id: number; readonly startTime: string; readonly channel: Socket }
    | undefined;
  #maxBodyBytes = 0;
  /** Aborts replies. Created on demand: it costs a twentieth of a small render, which has no replies. */
  #replying: AbortController | undefined;
  #killReason: KillReason | undefined;
  #isReady = false;
  #jobsDone = 0;
  #rssBytes = 0;

  /** @param onEnd called once, after the constructor has returned; `ending` as in `StartEvents` */
  constructor(
    forkServer: ForkServer,
    start: WorkerStart,
    frames: FrameSource,
    log: Log,
    onEnd: (ending: string) => void,
  ) {
    this.#frames = frames;
    this.#log = log;
    this.#endProcess = forkServer.start(start, {
      onStarted: (processId, channel) => this.#open(processId, channel),
      onLine: (line) => this.#onLine(line),
      onEnd: (ending) => void this.#onExit(ending, onEnd),
    });
    this.ready = this.#becomeReady(start.sandbox.isIsolated);
  }

  /** Process id of Node once the worker is ready; of the sandbox before. */
  get processId(): number | undefined {
    return this.#spawned?.id;
  }

  get wasReady(): boolean {
    return this.#isReady;
  }

  get isUsable(): boolean {
    return this.#isReady && !this.#inbox.hasFailed;
  }

  get killReason(): KillReason | undefined {
    return this.#killReason;
  }

  get jobsDone(): number {
    return this.#jobsDone;
  }

  get rssBytes(): number {
    return this.#rssBytes;
  }

  /**
   * Runs one job; replies to the worker's requests one at a time, within bounds, since it may be compromised.
   *
   * @throws WorkerExited if the worker ends or has ended, MediaError `TRANSFORM_TIMEOUT` at the deadline,
   *   `UNPROCESSABLE_MEDIA` for a violation of the protocol during the job; errors of the original's reader; or
   *   `signal.reason`
   */
  async run(job: WorkerJob, { signal, timeoutMs }: RenderBounds): Promise<WorkerResponse> {
    const channel = this.#spawned?.channel;
    // The caller may have aborted while waiting for a worker.
    signal.throwIfAborted();
    if (!this.isUsable || channel === undefined) throw new WorkerExited('no process');
    const stop = (): void => this.kill('stopped', signal.reason);
    const deadline = new Countdown(timeoutMs, () => {
      this.kill('deadline', deadlineError(isStopped(this.processId)));
    });
    signal.addEventListener('abort', stop, { once: true });
    const progress: JobProgress = { hasBegun: false, decodes: 0, failure: undefined };
    this.#maxBodyBytes = maxBodyBytesOf(job);
    try {
      let isSent = false;
      writePacket(channel, formatCommand(job), () => {
        isSent = true;
      });
      const response = await this.#converse(job, channel, progress);
      // Otherwise a pending write could read an original whose memory is freed after the render.
      if (!isSent) throw new ProtocolError('a response to a job that was not received');
      if (progress.failure !== undefined) throw progress.failure.error;
      return response;
    } catch (error) {
      if (error instanceof ProtocolError) this.#onViolation(error);
      if (progress.failure !== undefined) throw progress.failure.error;
      throw toJobError(error, progress.hasBegun ? deadline.leftMs : undefined);
    } finally {
      deadline.stop();
      signal.removeEventListener('abort', stop);
      this.#maxBodyBytes = 0;
      this.#replying = undefined;
      this.#expectSilence();
    }
  }

  /** Kills the process; a running job fails with `failure`. */
  kill(reason: KillReason, failure: unknown = new WorkerExited(reason)): void {
    if (this.#inbox.hasFailed) return;
    this.#killReason = reason;
    this.#fail(failure);
    this.#endProcess();
    this.#spawned?.channel.destroy();
  }

  async #converse(job: WorkerJob, channel: Socket, progress: JobProgress): Promise<WorkerResponse> {
    for (;;) {
      const message = await this.#inbox.next();
      if (message.kind === 'begun' && !progress.hasBegun) progress.hasBegun = true;
      else if (!progress.hasBegun) throw new ProtocolError(`unexpected "${message.kind}"`);
      else if (isResponseTo(job, message)) return this.#receive(message);
      else {
        const open = openRequest(job, message, progress, this.#frames);
        this.#replying ??= new AbortController();
        this.#expectSilence();
        const { signal } = this.#replying;
        await unlessAborted(reply(channel, open, progress, signal), signal);
      }
    }
  }

  /** @throws WorkerExited if earlier jobs may have used up the memory, so that a new worker must decide */
  #receive(response: WorkerResponse): WorkerResponse {
    this.#jobsDone += 1;
    this.#rssBytes = response.rssBytes;
    const isTooLarge = response.kind === 'failed' && response.code === 'MEDIA_TOO_LARGE';
    if (!isTooLarge || this.#jobsDone === 1) return response;
    this.kill('recycled');
    throw new WorkerExited(OUT_OF_MEMORY);
  }

  async #becomeReady(isIsolated: boolean): Promise<void> {
    const timer = setTimeout(() => this.kill('slow start'), START_TIMEOUT_MS);
    try {
      const { kind } = await this.#inbox.next();
      if (kind !== 'ready') throw new ProtocolError(`unexpected "${kind}"`);
    } catch (error) {
      if (error instanceof ProtocolError) this.#onViolation(error);
      throw new Error(this.#lines[0] ?? (error as Error).message);
    } finally {
      clearTimeout(timer);
    }
    if (this.#spawned !== undefined) {
      const id = findWorker(this.#spawned.id, isIsolated);
      this.#spawned = { ...this.#spawned, id, startTime: readStartTime(id) };
    }
    this.#isReady = true;
    this.#expectSilence();
  }

  #open(processId: number, channel: Socket): void {
    this.#spawned = { id: processId, startTime: '', channel };
    if (this.#inbox.hasFailed) return void channel.destroy();
    const packets = new PacketReader({
      maxHeaderBytes: MAX_MESSAGE_HEADER_BYTES,
      maxBodyBytes: () => this.#maxBodyBytes,
    });
    channel.on('data', (chunk) => this.#read(packets.read(chunk)));
    channel.on('error', this.#endProcess);
    channel.on('close', this.#endProcess);
  }

  #read(packets: Iterable<Packet>): void {
    const { isAwaited } = this.#inbox;
    try {
      for (const packet of packets) {
        const message = parseMessage(packet);
        if (!isAwaited) throw new ProtocolError(`unexpected "${message.kind}"`);
        this.#inbox.push(message);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#onViolation(error);
    }
  }

  /** Kills a worker that sends an unsolicited message. */
  #expectSilence(): void {
    if (this.#inbox.hasUnread) this.#onViolation(new ProtocolError('an unexpected message'));
  }

  #onViolation(error: ProtocolError): void {
    this.kill(`protocol: ${error.message}`, error);
  }

  #onLine(line: string): void {
    this.#lines.push(line);
    // Until the worker is ready, its sandbox may report what this host does not support.
    const level = this.#isReady ? 'warn' : 'info';
    const details = { processId: this.processId, line };
    this.#log[level](details, 'a render worker has written to its standard error');
  }

  async #onExit(ending: string, onEnd: (ending: string) => void): Promise<void> {
    const channel = this.#spawned?.channel;
    const isLost = ending === LOST_WITH_FORK_SERVER;
    // Most sandboxes have already killed the process.
    if (isLost && this.#spawned) killIfSameProcess(this.#spawned.id, this.#spawned.startTime);
    if (isLost) channel?.destroy();
    else if (channel !== undefined && !channel.closed) {
      const timer = setTimeout(() => channel.destroy(), LAST_MESSAGES_MS);
      await new Promise((resolve) => channel.once('close', resolve));
      clearTimeout(timer);
    }
    // V8 aborts if its heap or compiler gets no memory.
    const isOutOfMemory = this.#lines.some((line) => /out of memory/i.test(line));
    this.#fail(new WorkerExited(isOutOfMemory ? OUT_OF_MEMORY : ending));
    // Synchronous, so that a retry of the job counts this end.
    onEnd(ending);
  }

  #fail(error: unknown): void {
    this.#inbox.fail(error);
    this.#replying?.abort(error);
  }
}
