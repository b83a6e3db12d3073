import { MediaError } from '../../contract/errors.ts';
import { unlessAborted } from '../abort.ts';
import type { Clock } from '../ports.ts';

/** Slowest paces of the two ends of an upload. */
export interface PaceLimits {
  /** Time of waiting for the client, in milliseconds, in which the client must send `windowBytes`. */
  readonly windowMs: number;
  readonly windowBytes: number;
  /** Longest time for the storage to take a chunk, in milliseconds. */
  readonly storageTimeoutMs: number;
}

interface UploadBodyOptions {
  readonly limits: PaceLimits;
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly onReceived: (bytes: number) => void;
  /** Ends the wait for the next chunk. */
  readonly signal: AbortSignal;
}

/**
 * Body of an upload on its way from the client to the storage, at the pace of the slower one. The body knows which of
 * the two it waits for, so that neither is blamed for the other.
 */
export class UploadBody implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #options: UploadBodyOptions;
  /** Chunks that were peeked at, and not passed on yet. */
  readonly #peeked: Uint8Array[] = [];
  #isEnded = false;
  #receivedBytes = 0;
  /** The end that the body waits for, and since when. */
  #waitsFor: 'client' | 'storage' = 'storage';
  #sinceMs: number;
  /** State of the window: bytes that the client has sent, and the time spent waiting for the client before now. */
  #paidBytes = 0;
  #waitedMs = 0;

  constructor(source: AsyncIterable<Uint8Array>, options: UploadBodyOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#options = options;
    this.#sinceMs = options.clock.nowMs();
  }

  /**
   * Returns the first bytes, which stay part of the body; a later call may want more of them.
   *
   * @param isEnough whether a prefix is long enough
   * @returns fewer if the body ends
   * @throws as the body itself
   */
  async peek(isEnough: (prefix: Uint8Array) => boolean): Promise<Uint8Array> {
    let prefix = Buffer.concat(this.#peeked);
    while (!isEnough(prefix)) {
      const chunk = await this.#receive();
      if (chunk === undefined) break;
      this.#peeked.push(chunk);
      prefix = Buffer.concat([prefix, chunk]);
    }
    return prefix;
  }

  /** @throws MediaError `PAYLOAD_TOO_LARGE`; what the source throws; `signal.reason` */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    yield* this.#peeked.splice(0);
    for (;;) {
      const chunk = await this.#receive();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Returns the fault of the pace at this moment; called regularly. */
  findFault(): MediaError | undefined {
    const { limits, clock } = this.#options;
    const waitedMs = clock.nowMs() - this.#sinceMs;
    if (this.#waitsFor === 'storage') {
      if (waitedMs < limits.storageTimeoutMs) return undefined;
      const cause = new Error(`The storage has taken nothing for ${waitedMs} ms.`);
      return new MediaError('ORIGIN_TIMEOUT', { cause });
    }
    if (this.#waitedMs + waitedMs < limits.windowMs) return undefined;
    return new MediaError('REQUEST_TIMEOUT');
  }

  async #receive(): Promise<Uint8Array | undefined> {
    if (this.#isEnded) return undefined;
    const { clock, limits, maxBytes, onReceived, signal } = this.#options;
    this.#waitsFor = 'client';
    this.#sinceMs = clock.nowMs();
    const { done, value } = await unlessAborted(this.#source.next(), signal);
    const nowMs = clock.nowMs();
    this.#waitedMs += nowMs - this.#sinceMs;
    this.#waitsFor = 'storage';
    this.#sinceMs = nowMs;
    if (done === true) {
      this.#isEnded = true;
      return undefined;
    }
    this.#receivedBytes += value.length;
    onReceived(value.length);
    if (this.#receivedBytes > maxBytes) throw new MediaError('PAYLOAD_TOO_LARGE');
    this.#paidBytes += value.length;
    if (this.#paidBytes >= limits.windowBytes) {
      this.#paidBytes = 0;
      this.#waitedMs = 0;
    }
    return value;
  }
}
