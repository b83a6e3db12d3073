import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { hasLoopToken } from '../../contract/external-url.ts';
import {
  parseLocalUrl,
  parseTarget,
  type RequestTarget,
  splitTarget,
} from '../../contract/media-request.ts';
import { resultKey } from '../../contract/result-key.ts';
import {
  type CheckedSignature,
  checkSignature,
  readExpiry,
} from '../../contract/signing/attachment-signature.ts';
import { createAbsentRequest, type KeyedRequest } from '../../pipeline/absent-media.ts';
import type { BlockGuard } from '../../pipeline/blocks/block-guard.ts';
import type { Meter } from '../../pipeline/meter.ts';
import { localUrlOf, siteError } from '../../pipeline/site-failure.ts';
import type { Exchange } from '../exchange.ts';

export interface MediaTarget extends KeyedRequest {
  /** Signature of an attachment's URL, if `ATTACHMENT_SIGNING` is on. */
  readonly signature?: CheckedSignature;
  /** Request to serve instead if the signature is not valid. */
  readonly decoy?: KeyedRequest;
  readonly isDownload?: boolean;
  readonly isRedirected?: boolean;
}

export type ParsedTarget = MediaTarget | { readonly index: string };

/** Maximum length of a cached target. Only long file names with a signature and long URLs of other sites exceed it. */
const MAX_TARGET_LENGTH = 768;

/** Maximum number of cached targets. Each takes 600 bytes, or 1200 for a signed attachment. */
const MAX_TARGETS = 8_192;

/**
 * Creates the parser of request targets, which checks signatures (contract §9) first, then blocks.
 *
 * @param wallClock milliseconds since 1970
 */
export function createMediaTargets(
  { parseOptions, attachments }: Pick<Config, 'parseOptions' | 'attachments'>,
  blocks: BlockGuard | undefined,
  meter: Pick<Meter, 'count'>,
  wallClock: () => number,
) {
  const { mode } = attachments;
  const signing = mode === 'off' ? undefined : attachments.signing;
  /** Targets of cached results. Parsing takes longer than the rest of a hit without sending. */
  const parsedTargets = new LRUCache<string, MediaTarget>({ max: MAX_TARGETS });

  /**
   * Returns the remaining lifetime of a URL for caches in seconds, less one: nginx counts complete seconds, and keeps a
   * response until the last one ends.
   */
  const findMaxAge = (expiresAtSeconds: number | undefined): number | undefined =>
    expiresAtSeconds && Math.max(0, Math.floor(expiresAtSeconds - wallClock() / 1000) - 1);

  const toParsedTarget = ({ state }: Exchange, target: RequestTarget): ParsedTarget => {
    if (signing !== undefined) {
      // Applies to invalid signatures as well, so that clients cannot distinguish valid ones.
      state.maxRefusalAgeSeconds = () => {
        const expiresAtSeconds = readExpiry(splitTarget(target.text)[1]);
        const isExpired = (expiresAtSeconds ?? 0) * 1000 <= wallClock();
        return isExpired ? undefined : findMaxAge(expiresAtSeconds);
      };
    }
    if (target.kind === 'unknown') throw new MediaError('NOT_FOUND');
    if (target.kind === 'invalid') throw target.error;
    if (target.kind === 'default avatar') return target;
    const { request: media, isDownload, text } = target;
    const parsed = { media, cacheKey: resultKey(media), isDownload };
    if (signing === undefined || media.resource !== 'attachment') return parsed;
    // Constant work for every URL, so that the response time reveals nothing.
    const signature = checkSignature(splitTarget(text)[1], media.originKey, signing, wallClock());
    return { ...parsed, signature, decoy: createAbsentRequest(media) };
  };

  /** Returns the target, or for an invalid signature its decoy, whose response is that of a missing attachment. */
  const enforceSignature = ({ state }: Exchange, target: MediaTarget): MediaTarget => {
    const { signature, decoy } = target;
    if (signature === undefined) return target;
    const { expiresAtSeconds } = signature;
    // The signature of a cached target may have expired.
    const isExpired =
      signature.verdict === 'valid' && wallClock() >= (expiresAtSeconds ?? 0) * 1000;
    const verdict = isExpired ? 'expired' : signature.verdict;
    state.signature = verdict;
    meter.count('signatures', verdict);
    if (verdict !== 'valid' && mode === 'enforce') return { ...target, ...decoy };
    state.maxRefusalAgeSeconds = () => findMaxAge(expiresAtSeconds);
    return target;
  };

  return {
    /** Returns the maximum age of the response to a signed URL in seconds; `undefined` for other URLs. */
    maxAgeOf: ({ signature }: MediaTarget) => findMaxAge(signature?.expiresAtSeconds),
    knowsPath: (target: string): boolean => parseTarget(target, parseOptions).kind !== 'unknown',
    /** @throws MediaError `UNAUTHORIZED`, `NOT_FOUND`, `INVALID_FORM_BODY` */
    parse: (exchange: Exchange): ParsedTarget =>
      parsedTargets.get(exchange.target) ??
      toParsedTarget(exchange, parseTarget(exchange.target, parseOptions)),
    /** Parses the URL of this service to which another site redirects; throws an error that is not such a redirect. */
    parseRedirect: (exchange: Exchange, error: unknown): ParsedTarget => {
      const localUrl = localUrlOf(error);
      if (localUrl === undefined) throw error;
      const [, query] = splitTarget(parseTarget(exchange.target, parseOptions).text);
      const parsed = parseLocalUrl(localUrl, query, parseOptions);
      if (parsed === undefined) throw error;
      return { ...toParsedTarget(exchange, parsed), isRedirected: true };
    },
    remember: ({ target: text }: Exchange, target: MediaTarget): void => {
      const isCacheable = text.length <= MAX_TARGET_LENGTH && target.isRedirected !== true;
      if (isCacheable && !parsedTargets.has(text)) parsedTargets.set(text, target);
    },
    /**
     * Returns the target to serve: a decoy instead of refused or hidden media.
     *
     * @throws MediaError `UNAVAILABLE`, `ORIGIN_ERROR` in a loop
     */
    admit: (exchange: Exchange, parsed: MediaTarget): MediaTarget => {
      if (parsed.media.url !== undefined) checkLoop(exchange.request);
      const target = enforceSignature(exchange, parsed);
      const block = blocks?.find(target.media);
      if (blocks === undefined || block === undefined) return target;
      // A hidden original looks like a missing one.
      if (block.hidden) return { ...target, ...createAbsentRequest(target.media) };
      exchange.setOutcome({ kind: target.media.isPassthrough ? 'bypass' : 'hit' });
      throw blocks.errorOf(block);
    },
  };
}

/** @throws MediaError `ORIGIN_ERROR` if a request for external media has passed through this service before */
function checkLoop({ headers }: IncomingMessage): void {
  const loop = headers['cdn-loop'];
  const text = Array.isArray(loop) ? loop.join(', ') : (loop ?? '');
  if (text === '' || !hasLoopToken(text)) return;
  throw siteError('The request has already passed through this service.', { reason: 'loop' });
}
