import { randomBytes } from 'node:crypto';
import type { BlockKind, BlockSubject } from '../../contract/block-order.ts';

/** State of a block in memory. */
export interface KnownBlock {
  readonly generation: number;
  readonly hidden: boolean;
}

/**
 * Blocks by 53-bit digests of their values: a million take 46 MiB, and the values stay in the list. The digest has a seed
 * of the process. Of an original that nobody has blocked, it is that of one of a million blocks with a probability of
 * 10^-10.
 */
export class BlockIndex {
  readonly #lowSeed = randomBytes(4).readInt32LE();
  readonly #highSeed = randomBytes(4).readInt32LE();
  /** 2 × generation + hidden, by digest: a number takes no memory of its own. */
  readonly #states: Readonly<Record<BlockKind, Map<number, number>>> = {
    key: new Map(),
    prefix: new Map(),
    sha256: new Map(),
    external: new Map(),
  };

  countOf(kind: BlockKind): number {
    return this.#states[kind].size;
  }

  find({ kind, value }: BlockSubject): KnownBlock | undefined {
    return knownOf(this.#states[kind].get(this.#digestOf(value)));
  }

  /** Returns the block of a key or of one of the folders above; one that is hidden comes before others. */
  findKey(originKey: string): KnownBlock | undefined {
    let found = this.#states.key.get(this.#digestOf(originKey));
    if (this.#states.prefix.size === 0) return knownOf(found);
    for (let end = originKey.indexOf('/'); end >= 0; end = originKey.indexOf('/', end + 1)) {
      const state = this.#states.prefix.get(this.#digestOf(originKey.slice(0, end + 1)));
      if (state !== undefined && (found === undefined || state % 2 === 1)) found = state;
    }
    return knownOf(found);
  }

  set({ kind, value }: BlockSubject, { generation, hidden }: KnownBlock): void {
    this.#states[kind].set(this.#digestOf(value), 2 * generation + Number(hidden));
  }

  delete({ kind, value }: BlockSubject): void {
    this.#states[kind].delete(this.#digestOf(value));
  }

  #digestOf(value: string): number {
    let low = this.#lowSeed;
    let high = this.#highSeed;
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      low = Math.imul(low ^ code, 0x9e3779b1);
      high = Math.imul(high ^ code, 0x5f356495);
    }
    return mix(low, high);
  }
}

/** Mixes all bits of both halves into 53 (cyrb53, with the finalizer of MurmurHash3). */
function mix(low: number, high: number): number {
  const a = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  const b = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return 2 ** 32 * ((b ^ (b >>> 16)) & 0x1fffff) + ((a ^ (a >>> 16)) >>> 0);
}

function knownOf(state: number | undefined): KnownBlock | undefined {
  if (state === undefined) return undefined;
  return { generation: Math.floor(state / 2), hidden: state % 2 === 1 };
}
