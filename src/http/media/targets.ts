import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { hasOwnToken } from '../../contract/external-url.ts';
import {
  parseOwnUrl,
  parseTarget,
  type RequestTarget,
  splitTarget,
  type TargetReading,
} from '../../contract/media-request.ts';
import { resultKey } from '../../contract/result-key.ts';
import { verifyExternalPath } from '../../contract/signing/external-path.ts';
import { absentOf, type KeyedRequest } from '../../pipeline/absent-media.ts';
import type { BlockGuard } from '../../pipeline/blocks/block-guard.ts';
import { ownUrlOf, siteError } from '../../pipeline/site-failure.ts';
import type { Exchange } from '../exchange.ts';
import { ALLOWED_METHODS } from '../head.ts';
import type { AttachmentGuard, GuardedAttachment } from './attachment-guard.ts';

/** Parts that targets are read and admitted with. */
export interface MediaTargetsParts {
  readonly reading: Omit<TargetReading, 'readExternal'>;
  /** `undefined`: there are no external media. */
  readonly external: Config['external'];
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  /** `undefined`: the URLs of attachments need no signature. */
  readonly guard: AttachmentGuard | undefined;
}

/** Parsed request target of media from a storage or another site. */
export interface MediaTarget extends KeyedRequest {
  /** Verdict on the URL of an attachment that has to be signed. */
  readonly guarded?: GuardedAttachment;
  /** Whether a browser is to save the body, whatever its type. */
  readonly isDownload?: boolean;
  /** Whether another site redirects to it, which it may cease to do. */
  readonly isRedirected?: boolean;
}

export type ParsedTarget = MediaTarget | { readonly index: string };

/** Longest target that is remembered: all but long names with a signature, and long URLs of other sites. */
const MAX_TARGET_LENGTH = 768;

/** Each takes some 600 bytes with its request, a signed attachment about twice as much. */
const MAX_TARGETS = 8_192;

/** Reads the targets of requests, and decides which media are served: signatures are judged first, then blocks. */
export class MediaTargets {
  readonly #guard: AttachmentGuard | undefined;
  readonly #blocks: BlockGuard | undefined;
  readonly #reading: TargetReading;
  /** Parsed targets of results: to parse one takes longer than all else of a hit but its sending. */
  readonly #known = new LRUCache<string, MediaTarget>({ max: MAX_TARGETS });

  constructor({ reading, external, guard, blocks }: MediaTargetsParts) {
    this.#guard = guard;
    this.#blocks = blocks;
    this.#reading = {
      ...reading,
      readExternal:
        external &&
        ((rawPath) => verifyExternalPath(rawPath, external.keys, external.pathEncoding)),
    };
  }

  /** Methods at a request target; `undefined` if its path is unknown. */
  methodsAt(target: string): string | undefined {
    return parseTarget(target, this.#reading).kind === 'unknown' ? undefined : ALLOWED_METHODS;
  }

  /** @throws MediaError `UNAUTHORIZED`, `NOT_FOUND`, `INVALID_FORM_BODY` */
  read(exchange: Exchange): ParsedTarget {
    return (
      this.#known.get(exchange.target) ??
      this.#require(exchange, parseTarget(exchange.target, this.#reading))
    );
  }

  /** Reads the media of ours that another site redirects to, if that is the error; any other error is thrown. */
  readRedirect(exchange: Exchange, error: unknown): ParsedTarget {
    const ownUrl = ownUrlOf(error);
    if (ownUrl === undefined) throw error;
    const [, query] = splitTarget(parseTarget(exchange.target, this.#reading).text);
    const parsed = parseOwnUrl(ownUrl, query, this.#reading);
    if (parsed === undefined) throw error;
    return { ...this.#require(exchange, parsed), isRedirected: true };
  }

  remember({ target: text }: Exchange, target: MediaTarget): void {
    const isLasting = text.length <= MAX_TARGET_LENGTH && target.isRedirected !== true;
    if (isLasting && !this.#known.has(text)) this.#known.set(text, target);
  }

  /**
   * Returns the target that is served in the place of a target.
   *
   * @throws MediaError `UNAVAILABLE`, `ORIGIN_ERROR` in a loop
   */
  admit(exchange: Exchange, target: MediaTarget): MediaTarget {
    if (target.media.url !== undefined) checkLoop(exchange.request);
    return this.#unlessBlocked(exchange, this.#unlessRefused(exchange, target));
  }

  #require(exchange: Exchange, target: RequestTarget): ParsedTarget {
    const guard = this.#guard;
    if (guard !== undefined) {
      exchange.facts.maxRefusalAgeSeconds = () => guard.maxRefusalAgeOf(target.text);
    }
    if (target.kind === 'unknown') throw new MediaError('NOT_FOUND');
    if (target.kind === 'invalid') throw target.error;
    if (target.kind === 'default avatar') return target;
    const { request: media, isDownload, text } = target;
    const parsed = { media, key: resultKey(media), isDownload };
    if (guard === undefined || media.resource !== 'attachment') return parsed;
    return { ...parsed, guarded: guard.examine(text, media) };
  }

  /**
   * Returns the target that is served: the request's own; or, if its URL is refused, an absent one, so that the
   * response is that of a missing attachment, whatever else the request says.
   */
  #unlessRefused(exchange: Exchange, target: MediaTarget): MediaTarget {
    const { guarded } = target;
    if (guarded === undefined || this.#guard === undefined) return target;
    const verdict = this.#guard.judge(guarded.signature);
    exchange.facts.signature = verdict;
    if (this.#guard.isRefused(verdict)) return { ...target, ...guarded.absent };
    exchange.facts.maxRefusalAgeSeconds = () => this.#guard?.maxAgeOf(guarded.signature);
    return target;
  }

  /**
   * Returns the target, or that of an absent original instead of a hidden one, so that the response is the same.
   *
   * @throws MediaError `UNAVAILABLE`
   */
  #unlessBlocked(exchange: Exchange, target: MediaTarget): MediaTarget {
    const blocks = this.#blocks;
    const block = blocks?.find(target.media);
    if (blocks === undefined || block === undefined) return target;
    if (block.hidden) return { ...target, ...absentOf(target.media) };
    exchange.facts.outcome = { kind: target.media.isPassthrough ? 'bypass' : 'hit' };
    throw blocks.refuse(block);
  }
}

/** @throws MediaError `ORIGIN_ERROR` if a request for external media has come through us before */
function checkLoop({ headers }: IncomingMessage): void {
  const loop = headers['cdn-loop'];
  const text = Array.isArray(loop) ? loop.join(', ') : (loop ?? '');
  if (text === '' || !hasOwnToken(text)) return;
  throw siteError('The request has come through us before.', { reason: 'loop' });
}
