import { randomUUID } from 'node:crypto';
import type {
  Block,
  BlockOrder,
  BlockPageQuery,
  BlockSubject,
} from '../../contract/block-order.ts';
import { MediaError } from '../../contract/errors.ts';
import type { Clock, Log } from '../ports.ts';
import { BlockIndex } from './block-index.ts';
import {
  type BlockLine,
  foldList,
  formatHead,
  formatLine,
  isGeneration,
  type PlacedLine,
  parseHead,
  parseLine,
  readLines,
  type Snapshot,
} from './block-lines.ts';
import { probeConditions, removeLeftProbes, type SharedObjects } from './ports.ts';

interface BlockListOptions {
  readonly objects: SharedObjects;
  /** Longest time after which the blocks of other replicas hold here, in milliseconds. */
  readonly pollMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface BlockPage {
  readonly generation: number;
  readonly blocks: readonly Block[];
  readonly after: string | null;
}

/** Called with what is blocked from now on. `isOwn`: by an order to this process. */
export type BlockWatcher = (blocked: readonly BlockSubject[], isOwn: boolean) => Promise<void>;

/** The list cannot be read, or not be written: the last good one holds. */
export class ListUnavailable extends Error {
  override readonly name = 'ListUnavailable';
}

/** Generations after which they are folded into the list. */
const FOLDED_EVERY = 1_000;

/** Enough for the first line that Darkroom writes. */
const HEAD = { first: 0, lengthBytes: 4_096 } as const;

const MAX_ATTEMPTS = 50;

/** Part of the poll period after which the list is read: reading takes time, too. */
const POLL_SHARE = 0.8;

const PARALLEL = 8;

/**
 * List of blocks that all replicas share: a snapshot, and an object for each later generation beside it, which is written
 * only where there is none, so that writers take turns. The values stay there; memory has their digests.
 */
export class BlockList {
  readonly #options: BlockListOptions;
  #index = new BlockIndex();
  #snapshot: Snapshot | undefined;
  #generation = 0;
  #failure: unknown;
  #readAtMs: number;
  #isFolding = false;
  #turn: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  onBlocked: BlockWatcher = async () => undefined;

  private constructor(options: BlockListOptions) {
    this.#options = options;
    this.#readAtMs = options.clock.nowMs();
  }

  /**
   * Reads the list, which is created if it is missing, and follows it from now on.
   *
   * @throws Error if the list cannot be read, or if the conditions of writes do not hold
   */
  static async open(options: BlockListOptions): Promise<BlockList> {
    const { objects, log } = options;
    await removeLeftProbes(objects);
    await probeConditions(objects);
    if ((await objects.read('', HEAD)) === undefined) {
      const names = await objects.list('');
      if (names.some(isGeneration))
        throw new Error('The list is missing, and its generations are there.');
      const head = formatHead({ generation: 0, list: randomUUID() });
      await objects.write('', Buffer.from(head), 'absent');
      log.warn({}, 'The list of blocks was missing, and is empty now: nothing is blocked');
    }
    const list = new BlockList(options);
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

  /** Time since the latest read that succeeded, in seconds. */
  get ageSeconds(): number {
    return (this.#options.clock.nowMs() - this.#readAtMs) / 1000;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /**
   * Blocks something, or releases it.
   *
   * @returns the generation of the list that has the change
   * @throws ListUnavailable
   */
  async change(verb: 'block' | 'release', order: BlockOrder): Promise<number> {
    const { hidden, note } = order;
    const removed = verb === 'release';
    const lines = order.subjects.map((subject) => ({ ...subject, hidden, note, removed }));
    const generation = await this.#inTurn(() => this.#write(lines));
    if (verb === 'block') await this.onBlocked(order.subjects, true);
    return generation;
  }

  /** @throws ListUnavailable; MediaError `INVALID_FORM_BODY` for a place in a list that was folded meanwhile */
  async readPage(query: BlockPageQuery): Promise<BlockPage> {
    return this.#inTurn(async () => {
      await this.#sync();
      return this.#readPage(query);
    });
  }

  async #readPage({ after, limit }: BlockPageQuery): Promise<BlockPage> {
    const { objects } = this.#options;
    const generation = this.#generation;
    const base = this.#snapshot?.generation ?? 0;
    const [told = base, object = base, first = 0] = after?.split('.').map(Number) ?? [];
    if (told !== base) {
      const message = 'The list was folded meanwhile; begin anew.';
      throw new MediaError('INVALID_FORM_BODY', { faults: [{ path: 'after', message }] });
    }
    const blocks: Block[] = [];
    const range = { base, last: generation, from: { object, first } };
    for await (const lines of readLines(objects, range)) {
      for (const line of lines) {
        const block = this.#liveBlock(line, base);
        if (block === undefined) continue;
        if (blocks.length === limit) {
          return { generation, blocks, after: `${base}.${line.object}.${line.first}` };
        }
        blocks.push(block);
      }
    }
    return { generation, blocks, after: null };
  }

  /** Returns the block of a line, unless a later line replaces or removes it. */
  #liveBlock({ text, object, first }: PlacedLine, base: number): Block | undefined {
    if (first === 0 && object === base && parseHead(text) !== undefined) return undefined;
    const { removed, ...block } = parseLine(text);
    const known = removed ? undefined : this.#index.find(block);
    if (known === undefined) return undefined;
    const isLatest = object === base ? known.generation <= base : known.generation === object;
    return isLatest ? block : undefined;
  }

  #poll(): void {
    this.#timer = setTimeout(() => {
      void this.#inTurn(() => this.#sync())
        .catch(() => undefined) // noted
        .finally(() => {
          if (!this.#isClosed) this.#poll();
        });
    }, POLL_SHARE * this.#options.pollMs).unref();
  }

  /** Runs reads and writes one after the other. @throws ListUnavailable */
  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    const { clock, log } = this.#options;
    try {
      const result = await mine;
      if (this.#failure !== undefined) log.info({}, 'the list of blocks can be read again');
      this.#failure = undefined;
      this.#readAtMs = clock.nowMs();
      return result;
    } catch (error) {
      if (error instanceof MediaError) throw error;
      if (this.#failure === undefined) {
        log.error({ err: error }, 'the list of blocks cannot be read; the last one holds');
      }
      this.#failure = error;
      throw new ListUnavailable('The list of blocks is not available.', { cause: error });
    }
  }

  async #sync(): Promise<void> {
    const { objects } = this.#options;
    const head = await this.#readHead();
    if (head.tag !== this.#snapshot?.tag) await this.#takeSnapshot(head);
    for (let isNext = true; isNext; ) {
      const first = this.#generation + 1;
      const found = await objects.read(String(first));
      if (found === undefined) break;
      const numbers = Array.from({ length: PARALLEL - 1 }, (_, index) => String(first + 1 + index));
      const more = await Promise.all(numbers.map((number) => objects.read(number)));
      for (const object of [found, ...more]) {
        isNext = object !== undefined;
        if (object === undefined) break;
        const lines = Buffer.from(object.bytes).toString().split('\n');
        const blocked = this.#apply(lines.filter((line) => line !== '').map(parseLine));
        await this.onBlocked(blocked, false);
      }
    }
  }

  async #readHead(): Promise<Snapshot> {
    const found = await this.#options.objects.read('', HEAD);
    if (found === undefined) throw new Error('The list is missing.');
    const [line = ''] = Buffer.from(found.bytes).toString().split('\n');
    const isWhole = line.length < found.bytes.length || found.sizeBytes <= found.bytes.length;
    const head = line.trim() === '' || !isWhole ? undefined : parseHead(line);
    return { generation: 0, list: '', ...head, tag: found.tag };
  }

  /** Takes over a snapshot that is new here. */
  async #takeSnapshot(head: Snapshot): Promise<void> {
    const { objects } = this.#options;
    const before = this.#snapshot;
    if (before !== undefined) {
      const isOther = head.list !== before.list || head.generation < before.generation;
      if (isOther) throw new Error('Another list, or an older one, is in the place of the list.');
      // Another replica has folded what is known here.
      if (head.generation > before.generation && head.generation <= this.#generation) {
        this.#snapshot = head;
        return;
      }
    }
    const index = new BlockIndex();
    const blocked: BlockSubject[] = [];
    let isFirst = true;
    const base = head.generation;
    const range = { base, last: base, from: { object: base, first: 0 } };
    for await (const lines of readLines(objects, range)) {
      for (const { text } of lines) {
        const isHead = isFirst && parseHead(text) !== undefined;
        isFirst = false;
        if (isHead) continue;
        const line = parseLine(text);
        if (before !== undefined && this.#index.find(line) === undefined) blocked.push(line);
        index.set(line, { generation: base, hidden: line.hidden });
      }
      await new Promise(setImmediate);
    }
    this.#index = index;
    this.#snapshot = head;
    this.#generation = base;
    await this.onBlocked(blocked, false);
  }

  /** Applies the next generation; returns what it blocks. */
  #apply(lines: readonly BlockLine[]): readonly BlockSubject[] {
    const generation = this.#generation + 1;
    for (const line of lines) {
      if (line.removed) this.#index.delete(line);
      else this.#index.set(line, { generation, hidden: line.hidden });
    }
    this.#generation = generation;
    return lines.filter(({ removed }) => !removed);
  }

  async #write(lines: readonly BlockLine[]): Promise<number> {
    const { objects } = this.#options;
    const bytes = Buffer.from(lines.map(formatLine).join(''));
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      await this.#sync();
      const generation = this.#generation + 1;
      if ((await objects.write(String(generation), bytes, 'absent')) === undefined) continue;
      // A generation that was folded meanwhile has left its name: what is written there counts no more.
      const { generation: folded } = await this.#readHead();
      if (folded >= generation) {
        await objects.remove(String(generation));
        continue;
      }
      this.#apply(lines);
      if (generation - folded >= FOLDED_EVERY) void this.#fold();
      return generation;
    }
    throw new Error(`Other replicas have written before ${MAX_ATTEMPTS} times.`);
  }

  /** Folds the generations into a new snapshot, unless another replica does. */
  async #fold(): Promise<void> {
    const { objects, log } = this.#options;
    const before = this.#snapshot;
    if (this.#isFolding || before === undefined) return;
    this.#isFolding = true;
    try {
      const isLive = (line: PlacedLine): boolean =>
        this.#liveBlock(line, before.generation) !== undefined;
      await foldList(objects, before, this.#generation, isLive);
    } catch (error) {
      log.warn(
        { err: error },
        'the list of blocks could not be folded; the next write tries again',
      );
    } finally {
      this.#isFolding = false;
    }
  }
}
