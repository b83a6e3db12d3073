import type { Readable } from 'node:stream';
import { MediaError } from '../contract/errors.ts';
import type { OriginMeter, OriginOutcome } from '../pipeline/meter.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Origin, OriginBytes, OriginObject, ReadOptions } from '../pipeline/ports.ts';

/** What takes note of what the origin does. */
export interface OriginWatchers {
  readonly meter: OriginMeter;
  readonly health: OriginHealth;
}

/** An origin whose responses and bytes are counted; it changes nothing of them. */
export class WatchedOrigin implements Origin {
  readonly #inner: Origin;
  readonly #watchers: OriginWatchers;

  constructor(inner: Origin, watchers: OriginWatchers) {
    this.#inner = inner;
    this.#watchers = watchers;
  }

  read(key: string, options: ReadOptions): Promise<OriginObject> {
    return this.#watch(options, () => this.#inner.read(key, options));
  }

  readForMemory(key: string, options: ReadOptions): Promise<OriginObject | OriginBytes> {
    const inner = this.#inner;
    return this.#watch<OriginObject | OriginBytes>(
      options,
      () => inner.readForMemory?.(key, options) ?? inner.read(key, options),
    );
  }

  async #watch<Opened extends OriginObject | OriginBytes>(
    { signal }: ReadOptions,
    open: () => Promise<Opened>,
  ): Promise<Opened> {
    // Of an origin that hangs, the signal is all that is heard.
    const giveUp = (): void => this.#note(signal.reason, true);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const object = await open();
      if (!signal.aborted) {
        this.#watchers.meter.noteOutcome('found');
        this.#watchers.health.noteResponse();
      }
      if ('bytes' in object) this.#watchers.meter.noteReadBytes(object.bytes.byteLength);
      else this.#watchBody(object.body);
      return object;
    } catch (error) {
      if (!signal.aborted) this.#note(error, false);
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #note(error: unknown, isStopped: boolean): void {
    const { meter, health } = this.#watchers;
    const outcome = outcomeOf(error, isStopped);
    meter.noteOutcome(outcome);
    if (outcome === 'found' || outcome === 'missing') health.noteResponse();
    else if (outcome !== 'stopped') health.noteFailure(error);
  }

  /**
   * Counts what comes in where it comes in. A listener for `data` would set the body flowing, and a stream in
   * between would have buffers of its own, and end at other times.
   */
  #watchBody(body: Readable): void {
    const { meter } = this.#watchers;
    const push = body.push.bind(body);
    // Some of it may have come with the head.
    meter.noteReadBytes(body.readableLength);
    body.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk instanceof Uint8Array) meter.noteReadBytes(chunk.byteLength);
      return push(chunk, encoding);
    };
    body.once('error', (error) => {
      if (isBroken(error)) meter.noteBrokenBody();
    });
  }
}

function outcomeOf(error: unknown, isStopped: boolean): OriginOutcome {
  const code = error instanceof MediaError ? error.code : undefined;
  if (code === 'ORIGIN_TIMEOUT') return 'timeout';
  if (isStopped) return 'stopped';
  if (code === 'UNKNOWN_MEDIA') return 'missing';
  return code === 'RANGE_NOT_SATISFIABLE' ? 'found' : 'failed';
}

/** Not if its reader has left. */
function isBroken(error: Error): boolean {
  return error.name !== 'AbortError' || outcomeOf(error.cause, true) === 'timeout';
}
