import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import sharp from 'sharp';
import { vi } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import {
  type Opened,
  type OpenOptions,
  type RenderJob,
  WorkerLost,
} from '../../src/pipeline/ports.ts';
import { defer, settle } from '../support/deferred.ts';
import { MemoryResultStore } from '../support/memory-result-store.ts';
import type { RenderOptions } from '../support/render-slots.ts';
import type { TestAppOptions } from '../support/test-app.ts';
import {
  noWork,
  type Place,
  periods,
  places,
  type Setup,
  type StoreScript,
  type Truth,
  type Variant,
  type Version,
  type Work,
} from './cache-model.ts';

/** Deadlines of the origin's first byte and of the store, in milliseconds. */
const FIRST_BYTE_MS = 5_000;
const STORE_MS = 2_000;

const BUSY = { bottleneck: 'origin', retryAfterSeconds: 1 } as const;

/** More pictures than a walk needs; 0 is a text. */
const PICTURES = 80;

function drawPicture(number: number): Promise<Buffer> {
  const background = { r: number, g: 0, b: 0 };
  const picture = sharp({ create: { width: 32, height: 24, channels: 3, background } });
  return picture.png().toBuffer();
}

const text = Buffer.from('This is not a picture.');
export const pictures: readonly Buffer[] = await Promise.all(
  Array.from({ length: PICTURES }, (_, number) => (number === 0 ? text : drawPicture(number))),
);
const numbers = new Map(pictures.map((bytes, number) => [bytes.toString('latin1'), number]));

export function renderingOf({ picture }: Version, variant: Variant): Buffer {
  if (variant === 'untouched') return pictures[picture] ?? text;
  const width = variant === 'large' ? 20 : 16;
  return Buffer.from(`picture ${picture} as ${variant === 'png' ? 'png' : 'webp'}, ${width} px`);
}

export const dateOf = ({ tag }: Version): Date => new Date(Date.UTC(2020, 0, tag));

/** Scripted origin, other site, renderer and store, which count requests. */
export class CachePorts {
  readonly store: MemoryResultStore | undefined;
  readonly faults: string[] = [];
  openBodies = 0;
  truths: readonly Truth[] = [];
  /** Number of the present walk. */
  walk = 0;
  #picture = 0;
  #work = noWork();
  #gate:
    | { readonly at: string; readonly reach: () => void; readonly opened: Promise<void> }
    | undefined;
  readonly #owners = new Map<number, Truth>();
  readonly #setup: Setup;

  constructor(setup: Setup) {
    this.#setup = setup;
    if (setup.hasStore) this.store = new MemoryResultStore();
  }

  /** Adapters of the service. */
  get parts() {
    const { returnsBytes } = this.#setup;
    return {
      origin: {
        identity: 'tag' as const,
        open: async (key, options) => {
          const opened = await this.#read(key, options);
          return returnsBytes && options.isBuffered ? opened : this.#stream(opened);
        },
      },
      renderer: {
        render: (original: Uint8Array, ...job) => this.#render(original, ...job),
      },
      originalWriter: {
        write: (key, chunks) => this.#write(key, chunks),
        has: async (key) => this.#truthAt(key)?.exists ?? false,
        memoryBytesOf: () => 0,
        writePart: undefined,
      },
      ...(this.store && { resultStore: this.store }),
    } satisfies Partial<TestAppOptions>;
  }

  /** Replaces all originals by unknown ones. */
  begin(): readonly Truth[] {
    this.walk += 1;
    this.#picture = 0;
    this.#gate = undefined;
    this.faults.length = 0;
    this.#owners.clear();
    this.setStore('works');
    this.store?.clear();
    this.truths = places.map((place): Truth => {
      const scripts = { origin: 'responds', render: 'succeeds' } as const;
      return { place, versions: [], exists: false, ...scripts, freshForMs: periods.siteMinimum };
    });
    for (const truth of this.truths) this.replace(truth);
    this.takeWork();
    return this.truths;
  }

  setStore(script: StoreScript): void {
    const { store } = this;
    if (store === undefined) return;
    const stalled = Object.assign(new Error('It hangs.'), { name: 'TimeoutError' });
    store.failure = { works: undefined, fails: new Error('It is gone.'), hangs: stalled }[script];
    store.read = MemoryResultStore.prototype.read;
    if (script !== 'hangs') return;
    store.read = (_, signal) => {
      store.reads += 1;
      return this.#hang(signal, STORE_MS);
    };
  }

  replace(truth: Truth, how: 'picture' | 'text' | 'touch' = 'picture'): void {
    const last = truth.versions.at(-1);
    if (how === 'picture') this.#picture += 1;
    const picture = how === 'touch' ? (last?.picture ?? 0) : how === 'text' ? 0 : this.#picture;
    if (picture > 0) this.#owners.set(picture, truth);
    truth.versions.push({ tag: (last?.tag ?? 0) + 1, picture });
    truth.exists = true;
  }

  /** Work since the last call. */
  takeWork(): Work {
    const { store } = this;
    const work = { ...this.#work, storeReads: store?.reads ?? 0, storeWrites: store?.writes ?? 0 };
    this.#work = noWork();
    if (store !== undefined) Object.assign(store, { reads: 0, writes: 0 });
    return work;
  }

  /** Pauses the next read or render until `open` is called. */
  pauseAt(at: 'origin' | 'render') {
    const [reached, opened] = [defer<void>(), defer<void>()];
    this.#gate = { at, reach: () => reached.resolve(), opened: opened.promise };
    return {
      reached: reached.promise,
      open: () => {
        this.#gate = undefined;
        opened.resolve();
      },
    };
  }

  /** Returns a picture that no original has had yet. */
  get nextPicture(): Buffer {
    return Buffer.from(pictures[this.#picture + 1] ?? text);
  }

  keyOf(place: Place): string {
    return {
      asset: `icons/${this.walk}/ab`,
      attachment: `attachments/1/${this.walk}/p.png`,
      site: '',
    }[place];
  }

  #truthAt(key: string): Truth | undefined {
    return this.truths.find(({ place }) => place !== 'site' && this.keyOf(place) === key);
  }

  async #write(key: string, chunks: AsyncIterable<Uint8Array>): Promise<string> {
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks) parts.push(chunk);
    const bytes = Buffer.concat(parts);
    const truth = this.#truthAt(key);
    if (truth === undefined) throw new Error(`unknown key ${key}`);
    this.replace(truth);
    if (!pictures[this.#picture]?.equals(bytes)) this.faults.push('another picture was uploaded');
    return String(truth.versions.at(-1)?.tag);
  }

  /** Waits at a gate, even after the client has left: an origin may ignore aborts. */
  async #pass(at: string): Promise<void> {
    const gate = this.#gate;
    if (gate?.at !== at) return;
    this.#gate = undefined;
    gate.reach();
    await gate.opened;
  }

  /** Waits for a deadline, to the millisecond. */
  async #hang(signal: AbortSignal, deadlineMs: number): Promise<never> {
    await settle();
    signal.throwIfAborted(); // every client had already left
    vi.advanceTimersByTime(deadlineMs - 1);
    if (signal.aborted) this.faults.push(`given up before ${deadlineMs} ms`);
    vi.advanceTimersByTime(1);
    if (!signal.aborted) this.faults.push(`waited for longer than ${deadlineMs} ms`);
    throw signal.reason;
  }

  async #read(
    key: string,
    { signal, range }: OpenOptions,
  ): Promise<Opened & { readonly body: Uint8Array }> {
    this.#work[range === undefined ? 'fullReads' : 'peeks'] += 1;
    const truth = this.#truthAt(key);
    const { origin, exists, version } = { ...truth, version: truth?.versions.at(-1) };
    await this.#pass('origin');
    // A late original must be discarded.
    if (origin === 'hangs') await this.#hang(signal, FIRST_BYTE_MS).catch(() => undefined);
    if (origin === 'fails') throw new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    if (origin === 'is full') throw new MediaError('OVERLOADED', BUSY);
    if (!exists || version === undefined) throw new MediaError('UNKNOWN_MEDIA');
    const complete = pictures[version.picture] ?? text;
    const end = Math.min(range?.last ?? Infinity, complete.length - 1) + 1;
    const isCut = origin === 'cuts' && end === complete.length;
    // The body ends early, or exceeds its size.
    const isLong = isCut && version.tag % 2 === 0;
    const bytes = isLong
      ? Buffer.concat([complete, text])
      : complete.subarray(range?.first, isCut ? end / 2 : end);
    return {
      body: bytes,
      sizeBytes: complete.length,
      etag: `${key} ${version.tag}`,
      lastModified: dateOf(version),
      part: range && { first: range.first, last: end - 1 },
    };
  }

  #stream(opened: Opened & { readonly body: Uint8Array }): Opened {
    const body = Readable.from([Buffer.from(opened.body)], { objectMode: false });
    this.openBodies += 1;
    body.once('close', () => {
      this.openBodies -= 1;
    });
    body.on('error', () => undefined);
    return { ...opened, body };
  }

  async serveSite({ headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#work[headers['if-none-match'] === undefined ? 'fullReads' : 'peeks'] += 1;
    const truth = this.truths[places.indexOf('site')];
    if (truth === undefined) return;
    const { origin, exists, freshForMs } = truth;
    const version = truth.versions.at(-1);
    await this.#pass('origin');
    if (origin === 'fails' || origin === 'hangs') return void response.writeHead(503).end();
    if (!exists || version === undefined) return void response.writeHead(410).end();
    const body = pictures[version.picture] ?? text;
    const fields = {
      etag: `"${version.tag}"`,
      'last-modified': dateOf(version).toUTCString(),
      'cache-control': `max-age=${freshForMs / 1000}`,
    };
    if (headers['if-none-match'] === fields.etag) return void response.writeHead(304, fields).end();
    response.writeHead(200, { ...fields, 'content-length': body.length });
    if (origin !== 'cuts') return void response.end(body);
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  }

  async #render(
    original: Uint8Array,
    job: RenderJob,
    { signal }: RenderOptions,
  ): Promise<Uint8Array> {
    this.#work.renders += 1;
    const picture = numbers.get(Buffer.from(original).toString('latin1'));
    const script = this.#owners.get(picture ?? 0)?.render;
    await this.#pass('render');
    signal.throwIfAborted();
    const cause = new WorkerLost('It is gone.');
    if (script === undefined) throw new Error('rendered bytes of an unknown original');
    const failure = {
      succeeds: undefined,
      refuses: new MediaError('UNPROCESSABLE_MEDIA', { cause: new Error('corrupt') }),
      'costs a worker': new MediaError('UNPROCESSABLE_MEDIA', { cause }),
      'is late': new MediaError('TRANSFORM_TIMEOUT', { cause }),
      'is busy': new MediaError('OVERLOADED', BUSY),
    }[script];
    if (failure !== undefined) throw failure;
    return Buffer.from(`picture ${picture} as ${job.format}, ${job.size.widthPx} px`);
  }
}
