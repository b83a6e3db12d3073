import { Readable } from 'node:stream';
import { MediaError } from '../../src/contract/errors.ts';
import type {
  ByteRange,
  Origin,
  OriginObject,
  Renderer,
  RenderOptions,
} from '../../src/pipeline/ports.ts';
import type { RenderJob } from '../../src/pipeline/render/render-job.ts';
import { clampRange } from '../../src/storage/origin-object.ts';

/** What an origin does with a key; a deaf one responds although its client has left. */
export type OriginScript = 'responds' | 'is deaf' | 'fails' | 'is gone' | 'hangs' | 'cuts';

/** What a renderer does with an original. */
export type RenderScript = 'succeeds' | 'times out' | 'refuses';

/** An original, and what is to happen to it. */
export interface ScriptedOriginal {
  readonly bytes: Uint8Array;
  /** Its identity, and the text that it is rendered to. */
  readonly name: string;
  readonly lastModified: Date;
  readonly origin: OriginScript;
  readonly render: RenderScript;
}

/** Waits until the test lets this step happen. */
export type Turn = (what: string) => Promise<unknown>;

/** One piece of work on a key; a second one must not begin before it is over. */
interface Running {
  readonly isOver: () => boolean;
}

/**
 * An origin and a renderer that do what the test has written for each key, step by step in its
 * order, and note when they are asked to do the same thing twice at once.
 */
export class ScriptedPorts {
  readonly originals = new Map<string, ScriptedOriginal>();
  readonly faults: string[] = [];
  /** How often each key was read, and rendered. */
  readonly reads = new Map<string, number>();
  readonly renders = new Map<string, number>();
  /** Bodies that were handed out and have not been closed. */
  openBodies = 0;
  turn: Turn = () => Promise.resolve();
  readonly #reading = new Map<string, Running>();
  readonly #rendering = new Map<string, Running>();

  readonly origin: Origin = {
    read: (key, { signal, range }) => this.#read(key, signal, range),
  };
  readonly renderer: Renderer = {
    render: (original, job, options) => this.#render(original, job, options),
  };

  async #read(
    key: string,
    signal: AbortSignal,
    range: ByteRange | undefined,
  ): Promise<OriginObject> {
    count(this.reads, key);
    let isOver = false;
    let body: Readable | undefined;
    this.#begin(this.#reading, key, {
      // A body that comes too late is let go a moment later; `openBodies` shows if not.
      isOver: () => isOver || signal.aborted || body?.destroyed === true,
    });
    try {
      const original = this.originals.get(key);
      const script = original?.origin ?? 'is gone';
      const held = script === 'hangs' ? forever : this.turn(`the origin ${script}: ${key}`);
      await (script === 'is deaf' ? held : abortable(held, signal));
      if (original === undefined || script === 'is gone') throw new MediaError('UNKNOWN_MEDIA');
      if (script === 'fails')
        throw new MediaError('ORIGIN_ERROR', { cause: new Error('scripted') });
      body = this.#open(key, original, script === 'cuts', range);
      const { bytes, name, lastModified } = original;
      const [sizeBytes, etag] = [bytes.length, name];
      return { sizeBytes, etag, lastModified, storedContentType: undefined, body };
    } catch (error) {
      isOver = true;
      throw error;
    }
  }

  /** The second half comes when the test says so, if it comes. */
  #open(
    key: string,
    original: ScriptedOriginal,
    isCut: boolean,
    range: ByteRange | undefined,
  ): Readable {
    const { first, last } = clampRange(range, original.bytes.length);
    const bytes = original.bytes.subarray(first, last + 1);
    const half = Math.ceil(bytes.length / 2);
    const { turn } = this;
    async function* chunks(): AsyncGenerator<Buffer> {
      yield Buffer.from(bytes.subarray(0, half));
      if (half === bytes.length) return;
      await turn(`the second half: ${key}`);
      if (isCut) throw new MediaError('ORIGIN_ERROR', { cause: new Error('cut') });
      yield Buffer.from(bytes.subarray(half));
    }
    const body = Readable.from(chunks(), { objectMode: false, highWaterMark: 1 });
    this.openBodies += 1;
    body.once('close', () => {
      this.openBodies -= 1;
    });
    return body;
  }

  async #render(
    original: Uint8Array,
    _job: RenderJob,
    { signal }: RenderOptions,
  ): Promise<Uint8Array> {
    const [key, { name, render }] = this.#find(original);
    count(this.renders, key);
    let isOver = false;
    this.#begin(this.#rendering, key, { isOver: () => isOver || signal.aborted });
    try {
      await abortable(this.turn(`the renderer ${render}: ${key}`), signal);
      if (render === 'times out') throw new MediaError('TRANSFORM_TIMEOUT');
      if (render === 'refuses') {
        throw new MediaError('UNPROCESSABLE_MEDIA', { cause: new Error('scripted') });
      }
      return Buffer.from(name);
    } finally {
      isOver = true;
    }
  }

  #find(bytes: Uint8Array): [string, ScriptedOriginal] {
    const found = [...this.originals].find(([, it]) => Buffer.compare(it.bytes, bytes) === 0);
    if (found === undefined) throw new Error('the renderer was given bytes of no original');
    return found;
  }

  #begin(running: Map<string, Running>, key: string, work: Running): void {
    const what = running === this.#reading ? 'read' : 'rendered';
    if (running.get(key)?.isOver() === false) this.faults.push(`${key}: ${what} twice at once`);
    running.set(key, work);
  }
}

const forever = new Promise<never>(() => undefined);

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** An item that must be there. */
export function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`there is no ${index}`);
  return item;
}

/** What the service's ports promise, written down once more: a signal ends the wait at once. */
function abortable(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    promise.then(() => resolve(), reject);
  });
}
