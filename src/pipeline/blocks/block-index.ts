import { randomBytes } from 'node:crypto';
import { type BlockKind, type BlockSubject, blockKinds } from '../../contract/block-order.ts';

/** State of a block in memory. */
export interface KnownBlock {
  /** Generation of the list that has set it. */
  readonly generation: number;
  readonly hidden: boolean;
}

const SLASH = 47;

/**
 * Blocks by 53-bit digests of kind and value: a million take 46 MiB, and the values stay in the list. The digest has a
 * seed of the process. Of an original that nobody has blocked, it is that of one of a million blocks with a probability
 * of 10^-10.
 */
export class BlockIndex {
  readonly #lowSeed = randomBytes(4).readInt32LE();
  readonly #highSeed = randomBytes(4).readInt32LE();
  /** 2 × generation + hidden, by digest: a number takes no memory of its own. */
  readonly #states = new Map<number, number>();
  readonly #counts = new Map<BlockKind, number>();

  get size(): number {
    return this.#states.size;
  }

  countOf(kind: BlockKind): number {
    return this.#counts.get(kind) ?? 0;
  }

  find({ kind, value }: BlockSubject): KnownBlock | undefined {
    return knownOf(this.#states.get(this.#digestOf(kind, value)));
  }

  /** Returns the block of a key or of one of the folders above; one that is hidden comes before others. */
  findKey(originKey: string): KnownBlock | undefined {
    let low = this.#lowSeed;
    let high = this.#highSeed;
    let found: number | undefined;
    const consider = (kind: BlockKind): void => {
      const state = this.#states.get(mix(low, high, kind));
      if (state !== undefined && (found === undefined || state % 2 === 1)) found = state;
    };
    for (let index = 0; index < originKey.length; index += 1) {
      const code = originKey.charCodeAt(index);
      low = Math.imul(low ^ code, 0x9e3779b1);
      high = Math.imul(high ^ code, 0x5f356495);
      if (code === SLASH) consider('prefix');
    }
    consider('key');
    return knownOf(found);
  }

  /** Adds a block, or replaces it. */
  set({ kind, value }: BlockSubject, { generation, hidden }: KnownBlock): void {
    const digest = this.#digestOf(kind, value);
    if (!this.#states.has(digest)) this.#counts.set(kind, this.countOf(kind) + 1);
    this.#states.set(digest, 2 * generation + Number(hidden));
  }

  delete({ kind, value }: BlockSubject): void {
    const isRemoved = this.#states.delete(this.#digestOf(kind, value));
    if (isRemoved) this.#counts.set(kind, this.countOf(kind) - 1);
  }

  #digestOf(kind: BlockKind, value: string): number {
    let low = this.#lowSeed;
    let high = this.#highSeed;
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      low = Math.imul(low ^ code, 0x9e3779b1);
      high = Math.imul(high ^ code, 0x5f356495);
    }
    return mix(low, high, kind);
  }
}

/** Mixes all bits of both halves into 53 (cyrb53, with the finalizer of MurmurHash3). */
function mix(low: number, high: number, kind: BlockKind): number {
  const salted = low ^ Math.imul(blockKinds.indexOf(kind) + 1, 0x27d4eb2f);
  const a =
    Math.imul(salted ^ (salted >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  const b = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return 2 ** 32 * ((b ^ (b >>> 16)) & 0x1fffff) + ((a ^ (a >>> 16)) >>> 0);
}

function knownOf(state: number | undefined): KnownBlock | undefined {
  return state === undefined
    ? undefined
    : { generation: Math.floor(state / 2), hidden: state % 2 === 1 };
}
