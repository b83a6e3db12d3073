import type { Readable } from 'node:stream';
import type { Block } from '../../contract/block-request.ts';
import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { HiddenBlock, isAbsentKey } from '../absent-media.ts';
import type { BlockList } from './block-list.ts';

/** Names by which an original may be blocked; `sha256` is hexadecimal. */
interface Names extends Pick<MediaRequest, 'originKey'>, Partial<Pick<MediaRequest, 'url'>> {
  readonly sha256?: string | undefined;
}

/** An original that is being sent. Its digest may be stored under its `etag`. */
export interface SentOriginal extends Names {
  readonly etag: string | undefined;
}

/** Checks requests against the list of blocks (contract §15). */
export class BlockGuard {
  readonly #list: BlockList;
  /** Headers of a 451 (RFC 7725 §4). */
  readonly #headers: Readonly<Record<string, string>>;
  readonly #streams = new Map<Readable, SentOriginal>();

  constructor(list: BlockList, blockedBy: string | undefined) {
    this.#list = list;
    this.#headers = blockedBy === undefined ? {} : { link: `<${blockedBy}>; rel="blocked-by"` };
  }

  find(names: Names): Block | undefined {
    const { index } = this.#list;
    const { originKey, url, sha256 } = names;
    const named =
      url === undefined ? index.findKey(originKey) : index.find({ kind: 'external', value: url });
    const block = named ?? (sha256 ? index.find({ kind: 'sha256', value: sha256 }) : undefined);
    // A block of all keys of a kind also matches the absent original that is served instead.
    return block !== undefined && isAbsentKey(originKey) ? undefined : block;
  }

  /** Whether any digest is blocked; the digest of an original must then be known before it is served. */
  get hasDigestBlocks(): boolean {
    return this.#list.index.countOf('sha256') > 0;
  }

  isDigestBlocked(sha256: string): boolean {
    return this.#list.index.find({ kind: 'sha256', value: sha256 }) !== undefined;
  }

  /** @throws MediaError as `check` does */
  checkDigest(sha256: string | undefined): void {
    const block = sha256 && this.#list.index.find({ kind: 'sha256', value: sha256 });
    if (block) throw this.errorOf(block);
  }

  /** @throws MediaError `UNAVAILABLE`, or `UNKNOWN_MEDIA` if the block is hidden */
  check(names: Names): void {
    const block = this.find(names);
    if (block !== undefined) throw this.errorOf(block);
  }

  errorOf({ hidden }: Pick<Block, 'hidden'>): MediaError {
    if (hidden) {
      const cause = new HiddenBlock('The original is blocked, and the block is hidden.');
      return new MediaError('UNKNOWN_MEDIA', { cause });
    }
    return new MediaError('UNAVAILABLE', { headers: this.#headers });
  }

  /** Destroys the body if its original is blocked later. @throws MediaError as `check`, if it was blocked meanwhile */
  watch(sent: SentOriginal, body: Readable): Readable {
    try {
      this.check(sent);
    } catch (error) {
      body.destroy();
      throw error;
    }
    this.#streams.set(body, sent);
    return body.once('close', () => this.#streams.delete(body));
  }

  get sent(): readonly SentOriginal[] {
    return [...this.#streams.values()];
  }

  /** Destroys the bodies of blocked originals. @param digests by origin key; a wrong version only makes clients retry */
  destroyBlocked(digests: ReadonlyMap<string, string>): void {
    for (const [body, sent] of this.#streams) {
      const sha256 = sent.sha256 ?? digests.get(sent.originKey);
      const block = this.find({ ...sent, sha256 });
      if (block !== undefined) body.destroy(this.errorOf(block));
    }
  }
}
