import type { Block, BlockKind, BlockSubject } from '../../contract/block-request.ts';

/** A block. `repeatedAt` is the generation in which it was last posted again, which purges it again. */
export interface ListedBlock extends Block {
  readonly repeatedAt?: number;
}

export class BlockIndex {
  readonly #blocks: Readonly<Record<BlockKind, Map<string, ListedBlock>>>;

  constructor({
    key,
    prefix,
    sha256,
    external,
  }: Partial<Record<BlockKind, Map<string, ListedBlock>>> = {}) {
    this.#blocks = {
      key: new Map(key),
      prefix: new Map(prefix),
      sha256: new Map(sha256),
      external: new Map(external),
    };
  }

  copy(): BlockIndex {
    return new BlockIndex(this.#blocks);
  }

  countOf(kind: BlockKind): number {
    return this.#blocks[kind].size;
  }

  get size(): number {
    return Object.values(this.#blocks).reduce((sum, { size }) => sum + size, 0);
  }

  get all(): readonly ListedBlock[] {
    return Object.values(this.#blocks).flatMap((blocks) => [...blocks.values()]);
  }

  find({ kind, value }: BlockSubject): ListedBlock | undefined {
    return this.#blocks[kind].get(value);
  }

  /** Returns the block of a key or of a directory above it; a hidden one takes precedence. */
  findKey(originKey: string): Block | undefined {
    const { key, prefix } = this.#blocks;
    let found = key.get(originKey);
    if (prefix.size === 0) return found;
    for (let end = originKey.indexOf('/'); end >= 0; end = originKey.indexOf('/', end + 1)) {
      const block = prefix.get(originKey.slice(0, end + 1));
      if (block !== undefined && (found === undefined || block.hidden)) found = block;
    }
    return found;
  }

  set(block: ListedBlock): void {
    this.#blocks[block.kind].set(block.value, block);
  }

  delete({ kind, value }: BlockSubject): void {
    this.#blocks[kind].delete(value);
  }
}
