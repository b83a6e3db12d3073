import { LRUCache } from 'lru-cache';
import {
  type ExternalPathReader,
  isKnownPath,
  parseTarget,
  resultKey,
} from '../../contract/media-request.ts';
import { verifyExternalPath } from '../../contract/signing/external-path.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import type { AttachmentGuard, GuardedAttachment, KeyedRequest } from './attachment-guard.ts';

/** A request target that was read. */
type KnownTarget = MediaTarget | { readonly kind: 'default avatar'; readonly index: string };

/** One for media that are served from a storage or another site. */
export interface MediaTarget extends KeyedRequest {
  readonly kind: 'media';
  /** Verdict on the URL of an attachment that has to be signed. */
  readonly guarded?: GuardedAttachment;
}

/** All but those of long names with a signature, and of long URLs of other sites; what is longer is read anew each time. */
const MAX_TARGET_LENGTH = 768;

/** Each takes some 600 bytes, with its request; that of a signed attachment about twice as much. */
const MAX_TARGETS = 8_192;

/** Reads request targets, and remembers those that are asked for again and again. */
export class MediaTargets {
  readonly #readExternal: ExternalPathReader | undefined;
  readonly #guard: AttachmentGuard | undefined;
  /** Popular ones need not be read again: to read one takes longer than all else of a hit but its sending. */
  readonly #known = new LRUCache<string, KnownTarget>({ max: MAX_TARGETS });

  /**
   * @param externalKeys `undefined`: there are no external media
   * @param guard `undefined`: nothing is asked of the URLs of attachments
   */
  constructor(externalKeys: SigningKeys | undefined, guard: AttachmentGuard | undefined) {
    this.#readExternal = externalKeys && ((rawPath) => verifyExternalPath(rawPath, externalKeys));
    this.#guard = guard;
  }

  /** Whether the path of a target is one of ours, its values right or not. */
  knowsPath(text: string): boolean {
    return isKnownPath(text, this.#readExternal !== undefined);
  }

  /** @throws MediaError `UNAUTHORIZED`, `NOT_FOUND`, `INVALID_FORM_BODY` */
  read(text: string): KnownTarget {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const target = parseTarget(text, this.#readExternal);
    if (target.kind === 'default avatar') return target;
    const { request: media } = target;
    const read = { kind: 'media', media, key: resultKey(media) } as const;
    if (this.#guard === undefined || media.resource !== 'attachment') return read;
    return { ...read, guarded: this.#guard.examine(text, media) };
  }

  /** Reads a target no more, as long as it is among those that were remembered last. */
  remember(text: string, target: KnownTarget): void {
    if (text.length <= MAX_TARGET_LENGTH) this.#known.set(text, target);
  }
}
