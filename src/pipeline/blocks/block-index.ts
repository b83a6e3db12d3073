import { randomBytes } from 'node:crypto';
import { type BlockKind, type BlockSubject, blockKinds } from '../../contract/block-order.ts';

/** State of a block in memory. */
export interface KnownBlock {
  /** Generation of the list that has set it. */
  readonly generation: number;
  readonly hidden: boolean;
}

/** Content of a slot that was never used, and of one whose block was removed. */
const EMPTY = 0;
const REMOVED = 1;

/** Slots at first; always a power of two. */
const FIRST_SLOTS = 1_024;

const SLASH = 47;

/**
 * Blocks as 64-bit digests of kind and value, in an open-addressed table of 12 bytes per slot: a million blocks take 24
 * MiB, and the values stay in the list. The digest has a seed of the process. Of an original that nobody has blocked, it
 * is that of one of a million blocks with a probability of 10^-13.
 */
export class BlockIndex {
  readonly #lowSeed = randomBytes(4).readInt32LE();
  readonly #highSeed = randomBytes(4).readInt32LE();
  #low = new Int32Array(FIRST_SLOTS);
  #high = new Int32Array(FIRST_SLOTS);
  /** `EMPTY`, `REMOVED`, or 2 × (generation + 1) + hidden. */
  #states = new Uint32Array(FIRST_SLOTS);
  #usedSlots = 0;
  #size = 0;
  readonly #counts = new Map<BlockKind, number>(blockKinds.map((kind) => [kind, 0]));
  /** Digest of the latest call of `#digest`. */
  #digestLow = 0;
  #digestHigh = 0;

  /** Number of blocks. */
  get size(): number {
    return this.#size;
  }

  /** Number of blocks of a kind. */
  countOf(kind: BlockKind): number {
    return this.#counts.get(kind) ?? 0;
  }

  find({ kind, value }: BlockSubject): KnownBlock | undefined {
    return this.#known(this.#findState(kind, value));
  }

  /** Returns the block of a key or of one of the folders above; one that is hidden comes before others. */
  findKey(originKey: string): KnownBlock | undefined {
    let low = this.#lowSeed;
    let high = this.#highSeed;
    let found = EMPTY;
    for (let index = 0; index < originKey.length; index += 1) {
      const code = originKey.charCodeAt(index);
      low = Math.imul(low ^ code, 0x9e3779b1);
      high = Math.imul(high ^ code, 0x5f356495);
      if (code === SLASH) found = stronger(found, this.#stateAt(low, high, 'prefix'));
    }
    return this.#known(stronger(found, this.#stateAt(low, high, 'key')));
  }

  /** Adds a block, or replaces it. */
  set({ kind, value }: BlockSubject, { generation, hidden }: KnownBlock): void {
    if (2 * (this.#usedSlots + 1) > this.#states.length) this.#rebuild();
    const slot = this.#slotOf(kind, value);
    const before = this.#states[slot] ?? EMPTY;
    if (before === EMPTY) this.#usedSlots += 1;
    if (before <= REMOVED) this.#count(kind, 1);
    this.#low[slot] = this.#digestLow;
    this.#high[slot] = this.#digestHigh;
    this.#states[slot] = 2 * (generation + 1) + Number(hidden);
  }

  /** Removes a block; returns whether it existed. */
  delete({ kind, value }: BlockSubject): boolean {
    const slot = this.#slotOf(kind, value);
    if ((this.#states[slot] ?? EMPTY) <= REMOVED) return false;
    this.#states[slot] = REMOVED;
    this.#count(kind, -1);
    return true;
  }

  #count(kind: BlockKind, change: number): void {
    this.#size += change;
    this.#counts.set(kind, this.countOf(kind) + change);
  }

  #findState(kind: BlockKind, value: string): number {
    return this.#states[this.#slotOf(kind, value)] ?? EMPTY;
  }

  #known(state: number): KnownBlock | undefined {
    if (state <= REMOVED) return undefined;
    return { generation: Math.floor(state / 2) - 1, hidden: state % 2 === 1 };
  }

  #slotOf(kind: BlockKind, value: string): number {
    let low = this.#lowSeed;
    let high = this.#highSeed;
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      low = Math.imul(low ^ code, 0x9e3779b1);
      high = Math.imul(high ^ code, 0x5f356495);
    }
    this.#digest(low, high, kind);
    return this.#probe();
  }

  #stateAt(low: number, high: number, kind: BlockKind): number {
    this.#digest(low, high, kind);
    return this.#states[this.#probe()] ?? EMPTY;
  }

  /** Mixes all bits of both halves into each (cyrb53, with the finalizer of MurmurHash3). */
  #digest(low: number, high: number, kind: BlockKind): void {
    const salted = low ^ Math.imul(blockKinds.indexOf(kind) + 1, 0x27d4eb2f);
    const a =
      Math.imul(salted ^ (salted >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
    const b = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
    this.#digestLow = a ^ (a >>> 16);
    this.#digestHigh = b ^ (b >>> 16);
  }

  /** Returns the slot of the latest digest, or the empty one where it would be. */
  #probe(): number {
    const mask = this.#states.length - 1;
    let slot = this.#digestLow & mask;
    while (this.#states[slot] !== EMPTY) {
      const isSame = this.#low[slot] === this.#digestLow && this.#high[slot] === this.#digestHigh;
      if (isSame) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  /** Makes room, and drops removed blocks. */
  #rebuild(): void {
    const [low, high, states] = [this.#low, this.#high, this.#states];
    let slots = FIRST_SLOTS;
    while (slots < 3 * (this.size + 1)) slots *= 2;
    this.#low = new Int32Array(slots);
    this.#high = new Int32Array(slots);
    this.#states = new Uint32Array(slots);
    this.#usedSlots = 0;
    states.forEach((state, index) => {
      if (state <= REMOVED) return;
      this.#digestLow = low[index] ?? 0;
      this.#digestHigh = high[index] ?? 0;
      const slot = this.#probe();
      this.#low[slot] = this.#digestLow;
      this.#high[slot] = this.#digestHigh;
      this.#states[slot] = state;
      this.#usedSlots += 1;
    });
  }
}

/** Returns the state of two that decides: a hidden one, else any. */
function stronger(first: number, second: number): number {
  if (first <= REMOVED) return second;
  return second > REMOVED && second % 2 === 1 ? second : first;
}
