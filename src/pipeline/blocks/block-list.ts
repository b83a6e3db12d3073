import type { Block, BlockRequest, BlockSubject } from '../../contract/block-request.ts';
import { MediaError } from '../../contract/errors.ts';
import type { Tools } from '../meter.ts';
import { BlockIndex } from './block-index.ts';
import { formatList, parseList } from './block-lines.ts';
import { rewriteEarlierList } from './earlier-list.ts';
import { probeConditions, removeAbandonedProbes, type SharedObjects } from './ports.ts';

/** Receives new and repeated blocks; `isOwn`: this process received the request. */
export type BlockWatcher = (blocked: readonly BlockSubject[], isOwn: boolean) => Promise<void>;

/** The list cannot be read or written; the last version read stays in effect. */
export class ListUnavailable extends Error {
  override readonly name = 'ListUnavailable';
}

const MAX_ATTEMPTS = 50;

/**
 * Maximum pause between attempts, in milliseconds. All attempts together take longer than the lock of a killed process
 * lasts (`BLOCKLIST=filesystem`).
 */
const MAX_PAUSE_MS = 300;

/** Fraction of the poll period after which the list is read; reading takes the rest. */
const POLL_FRACTION = 0.8;

/**
 * List of blocks that all replicas share: one object, replaced by conditional writes and read again when its tag
 * changes.
 */
export class BlockList {
  readonly #objects: SharedObjects;
  readonly #pollMs: number;
  readonly #tools: Pick<Tools, 'clock' | 'log'>;
  #index = new BlockIndex();
  #generation = 0;
  /** Tag of the version in memory, once read. */
  #tag: string | undefined;
  #failure: unknown;
  #readAtMs: number;
  #lastAccess: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  onBlocked: BlockWatcher = async () => undefined;

  private constructor(objects: SharedObjects, pollMs: number, tools: Pick<Tools, 'clock' | 'log'>) {
    this.#objects = objects;
    this.#pollMs = pollMs;
    this.#tools = tools;
    this.#readAtMs = tools.clock.nowMs();
  }

  /**
   * Reads or creates the list, and polls for changes.
   *
   * @param pollMs maximum time until this replica applies the changes of others
   * @throws Error if the list cannot be read, or if the storage ignores the conditions of writes
   */
  static async open(
    objects: SharedObjects,
    pollMs: number,
    tools: Pick<Tools, 'clock' | 'log'>,
  ): Promise<BlockList> {
    await removeAbandonedProbes(objects);
    await probeConditions(objects);
    await rewriteEarlierList(objects);
    if ((await objects.findTag('')) === undefined) {
      const empty = await formatList({ generation: 0, index: new BlockIndex() });
      await objects.write('', empty, 'absent');
      tools.log.warn(
        {},
        'the list of blocks was missing; created an empty one, which blocks nothing',
      );
    }
    const list = new BlockList(objects, pollMs, tools);
    await list.#sync();
    list.#poll();
    return list;
  }

  get generation(): number {
    return this.#generation;
  }

  get index(): BlockIndex {
    return this.#index;
  }

  get isUnreadable(): boolean {
    return this.#failure !== undefined;
  }

  /** Time since the last successful check for changes, in seconds. */
  get ageSeconds(): number {
    return (this.#tools.clock.nowMs() - this.#readAtMs) / 1000;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /**
   * Adds or removes blocks; all replicas purge a repeated block again. Returns the new generation.
   *
   * @throws ListUnavailable; MediaError `INVALID_FORM_BODY` if the list would be too long
   */
  async change(verb: 'block' | 'release', request: BlockRequest): Promise<number> {
    const generation = await this.#inSequence(() => this.#write(verb, request));
    if (verb === 'block') await this.onBlocked(request.subjects, true);
    return generation;
  }

  /** Reads the list, or one block of it. @throws ListUnavailable */
  async read(subject: BlockSubject | undefined): Promise<{
    readonly generation: number;
    readonly blocks: readonly Block[];
  }> {
    return this.#inSequence(async () => {
      await this.#sync();
      const found = subject && this.#index.find(subject);
      const some = found === undefined ? [] : [found];
      const blocks = subject === undefined ? this.#index.all : some;
      return {
        generation: this.#generation,
        blocks: blocks.map(({ repeatedAt, ...block }) => block),
      };
    });
  }

  #poll(): void {
    this.#timer = setTimeout(() => {
      void this.#inSequence(() => this.#sync())
        .catch(() => undefined) // logged
        .finally(() => {
          if (!this.#isClosed) this.#poll();
        });
    }, POLL_FRACTION * this.#pollMs).unref();
  }

  /** Runs reads and writes sequentially. @throws ListUnavailable */
  async #inSequence<Result>(work: () => Promise<Result>): Promise<Result> {
    const access = this.#lastAccess.then(work);
    this.#lastAccess = access.catch(() => undefined);
    const { clock, log } = this.#tools;
    try {
      const result = await access;
      if (this.#failure !== undefined) log.info({}, 'the list of blocks can be read again');
      this.#failure = undefined;
      this.#readAtMs = clock.nowMs();
      return result;
    } catch (error) {
      if (error instanceof MediaError) throw error;
      if (this.#failure === undefined) {
        log.error(
          { err: error },
          'the list of blocks cannot be read; the last version stays in effect',
        );
      }
      this.#failure = error;
      throw new ListUnavailable('The list of blocks is not available.', { cause: error });
    }
  }

  /** Reads the list if its tag has changed; returns the tag. */
  async #sync(): Promise<string> {
    const tag = await this.#objects.findTag('');
    if (tag !== undefined && tag === this.#tag) return tag;
    const found = await this.#objects.read('');
    if (found === undefined) throw new Error('The list of blocks is missing.');
    const { generation, index } = await parseList(found.bytes);
    if (generation < this.#generation) {
      throw new Error(`Generation ${generation} of the list has replaced ${this.#generation}.`);
    }
    const { index: before, generation: last } = this;
    const blocked = index.all.filter(
      (block) => before.find(block) === undefined || (block.repeatedAt ?? 0) > last,
    );
    const isFirst = this.#tag === undefined;
    this.#apply(found.tag, generation, index);
    // Not awaited: a purge of the store may take a minute.
    if (blocked.length > 0 && !isFirst) this.onBlocked(blocked, false).catch(() => undefined); // logged
    return found.tag;
  }

  #apply(tag: string, generation: number, index: BlockIndex): void {
    this.#tag = tag;
    this.#generation = generation;
    this.#index = index;
  }

  async #write(verb: 'block' | 'release', { subjects, ...details }: BlockRequest): Promise<number> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const tag = await this.#sync();
      const generation = this.#generation + 1;
      const index = this.#index.copy();
      for (const subject of subjects) {
        const repeated = index.find(subject) && { repeatedAt: generation };
        if (verb === 'block') index.set({ ...subject, ...details, ...repeated });
        else index.delete(subject);
      }
      const bytes = await formatList({ generation, index }).catch(rejectLongList);
      const written = await this.#objects.write('', bytes, { tag });
      if (written !== undefined) {
        this.#apply(written, generation, index);
        return generation;
      }
      const pauseMs = Math.random() * Math.min(MAX_PAUSE_MS, 20 * attempt);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    throw new Error(`Other replicas replaced the list before each of ${MAX_ATTEMPTS} writes.`);
  }
}

function rejectLongList(error: unknown): never {
  if (!(error instanceof RangeError)) throw error;
  throw new MediaError('INVALID_FORM_BODY', { faults: [{ path: '', message: error.message }] });
}
