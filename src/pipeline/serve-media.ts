import { MediaError } from '../contract/errors.ts';
import { type MediaRequest, passthroughOf } from '../contract/media-request.ts';
import { validatorsOf } from '../contract/result-key.ts';
import { unlessAborted } from './abort.ts';
import { createAbsentRequest, isHidden, type KeyedRequest } from './absent-media.ts';
import type { MediaResponse, RequestContext, SelectedBytes } from './media-response.ts';
import { OriginalReplaced } from './originals/open-beginning.ts';
import type { OriginalServices, Originals } from './originals/originals.ts';
import { openPassthrough } from './originals/passthrough.ts';
import type { IdentifiedOriginal } from './originals/remembered-original.ts';
import { isReplaced } from './originals/replaced.ts';
import type { MediaResult } from './ports.ts';
import {
  isSentUnmodified,
  type Rendered,
  type RenderTask,
  renderMedia,
} from './render/render-media.ts';
import {
  type CacheOutcome,
  markCollapsed,
  type RequestTrace,
  reuseOutcome,
} from './request-trace.ts';
import { SingleFlight } from './single-flight.ts';
import { localUrlOf } from './site-failure.ts';

type Attempt = MediaResponse<never> | 'send original' | 'try again';

interface RenderFlight {
  readonly rendered: Promise<Rendered>;
  readonly task: RenderTask;
  readonly identified: IdentifiedOriginal;
  hasFailed: boolean;
}

const HIT: CacheOutcome = { kind: 'hit' };
const BYPASS: CacheOutcome = { kind: 'bypass' };

/**
 * Serves media requests in these stages, of which HTTP does the first and the last:
 *
 *     parse → look up → identify the original → join → store → header → plan → rate limit → render → respond
 *
 * Concurrent requests share the identification of an original; those for the same result share all later stages.
 */
export class MediaService {
  readonly #services: OriginalServices;
  readonly #renders = new SingleFlight<RenderFlight>(
    ({ hasFailed, task }) => !hasFailed && !task.original.isInvalidated,
  );

  constructor(services: OriginalServices) {
    this.#services = services;
  }

  /** Finds a current result in memory, synchronously. @throws MediaError `UNAVAILABLE` */
  findHit({ media, cacheKey }: KeyedRequest, trace: RequestTrace): MediaResult | undefined {
    const { originKey } = media;
    const { clock, caches, meter, records } = this.#services;
    const sinceMs = clock.nowMs();
    const known = caches.results.get(cacheKey);
    meter.count(known === undefined ? 'cacheMisses' : 'cacheHits', 'results');
    const identity = known && records.findFresh(originKey);
    trace.add('store', clock.nowMs() - sinceMs);
    const isFresh = known !== undefined && identity?.etag === known.originalEtag;
    if (isFresh && this.#passesDigestBlocks(originKey, known)) return known;
    // Only for a miss: traces do not show the stages of a hit.
    trace.add('store', 0, { memory: 'results', found: known !== undefined });
    return undefined;
  }

  /** Whether the original's digest is known and not blocked; also true if no digest is blocked. */
  #passesDigestBlocks(originKey: string, { originalEtag }: MediaResult): boolean {
    const { blocks, records } = this.#services;
    if (blocks?.hasDigestBlocks !== true) return true;
    const sha256 = records.findSha256(originKey, originalEtag);
    try {
      blocks.checkDigest(sha256);
    } catch (error) {
      if (!isHidden(error)) throw error;
      return false; // `serve` responds as for a missing original
    }
    return sha256 !== undefined;
  }

  /**
   * Serves a request without a hit. Does all retries of a request: if the original was purged or replaced meanwhile, if
   * a joined render exceeded another client's rate limit, or if a hidden block was found late.
   *
   * @throws MediaError of any stage; `context.signal.reason` when the client disconnects
   */
  async serve<Selected extends SelectedBytes>(
    requested: KeyedRequest,
    context: RequestContext<Selected>,
  ): Promise<MediaResponse<Selected>> {
    const { blocks, records, refusals, originals } = this.#services;
    const { trace } = context;
    let { media, cacheKey } = requested;
    let wasReplaced = false;
    for (;;) {
      let flight: ReturnType<Originals['join']> | undefined;
      try {
        if (media.isPassthrough) return await this.#openOriginal(media, context, wasReplaced);
        context.onWait?.(HIT); // a remembered refusal counts as a hit
        blocks?.check(media); // UNAVAILABLE, UNKNOWN_MEDIA: a block may be posted while a request waits
        refusals.throwIfRefused(cacheKey); // rejected recently: 415, 422, 504
        if (records.isMissing(media.originKey)) throw new MediaError('UNKNOWN_MEDIA');
        flight = originals.join(media);
        const attempt = await this.#attempt({ media, cacheKey }, flight, context);
        if (flight.work.isInvalidated || attempt === 'try again') continue; // nothing from before a purge is served after it
        if (attempt !== 'send original') return attempt;
        media = passthroughOf(media);
      } catch (error) {
        // A caller without `context.original` handles a hidden block itself.
        if (isHidden(error) && context.original !== undefined) {
          ({ media, cacheKey } = this.#hide(requested, trace)); // respond as for a missing original
          continue;
        }
        const isPurged = flight?.work.isInvalidated === true && !context.signal.aborted;
        if (error instanceof OriginalReplaced || (isPurged && isReplaced(error))) {
          if (wasReplaced) throw asMediaError(error);
          wasReplaced = true;
          ({ media, cacheKey } = requested); // a picture may have replaced a video
          continue;
        }
        if (isPurged) continue;
        if (localUrlOf(error) !== undefined) return { kind: 'redirect', error };
        throw error;
      } finally {
        flight?.leave();
      }
    }
  }

  /** Identifies the original, and finds, joins or starts the rendering of its current state. */
  async #attempt(
    { media, cacheKey }: KeyedRequest,
    { work: original, isJoined }: ReturnType<Originals['join']>,
    context: Omit<RequestContext, 'original'>,
  ): Promise<Attempt> {
    const { originals, caches, store, release } = this.#services;
    const { signal, trace } = context;
    const known = caches.results.get(cacheKey);
    const hasResult = known !== undefined;
    const kind = hasResult ? 'stale' : 'miss';
    const pending = { kind, collapsed: isJoined } as const;
    context.onWait?.(pending);
    const mayBeStored = store !== undefined && original.backend.remembers;
    const need = hasResult || mayBeStored || context.isConditional ? 'identity' : 'bytes';
    const identifying = original.identify(trace, need, hasResult);
    const found = await unlessAborted(identifying, signal).catch((error: unknown) => {
      // Identifying another site's original reads it completely, and may reject it.
      original.refuse(cacheKey, error);
      throw error; // UNKNOWN_MEDIA, ORIGIN_ERROR, ORIGIN_TIMEOUT, OVERLOADED; UNSUPPORTED_MEDIA_TYPE, MEDIA_TOO_LARGE
    });
    const identity = await originals.checkBytes(original, found.identity, signal); // UNAVAILABLE, UNKNOWN_MEDIA
    if (known?.originalEtag === identity.etag) {
      const outcome = markCollapsed(reuseOutcome(found), isJoined);
      return { kind: 'rendition', result: known, outcome };
    }
    // A video that is sent unmodified has other validators.
    const isRendered = !isSentUnmodified(media) || !original.isLikelyVideo(identity);
    if (context.isConditional && found.failure === undefined && isRendered) {
      const validators = validatorsOf(identity, cacheKey, release);
      if (context.matchesCondition(validators)) {
        return { kind: 'not-modified', validators, outcome: found.contactedOrigin ? pending : HIT };
      }
    }
    signal.throwIfAborted();
    const render = this.#renders.join(cacheKey, (controls) => {
      const task = { request: media, cacheKey, original, trace, ...controls };
      return this.#startRender(task, { ...found, identity }, context);
    });
    context.onWait?.({ kind, collapsed: render.isJoined });
    try {
      const wait = (): Promise<Rendered> => unlessAborted(render.work.rendered, signal);
      const { result, isStored, isCached } = await (render.isJoined
        ? trace.stage('join', wait, render.work.task.trace)
        : wait());
      if (result === undefined) return 'send original';
      const outcome: CacheOutcome = isStored
        ? reuseOutcome(render.work.identified, 'store')
        : { kind, stored: isCached };
      return { kind: 'rendition', result, outcome: markCollapsed(outcome, render.isJoined) };
    } catch (error) {
      // The rate limit of another client does not reject this one.
      const isRateLimited = error instanceof MediaError && error.code === 'RATE_LIMITED';
      if (isRateLimited && render.isJoined) return 'try again';
      throw error;
    } finally {
      render.leave();
    }
  }

  #startRender(
    task: RenderTask,
    identified: IdentifiedOriginal,
    { rateLimitKey }: Pick<RequestContext, 'rateLimitKey'>,
  ): RenderFlight {
    const rendered = renderMedia(this.#services, task, identified, rateLimitKey);
    const flight = { rendered, task, identified, hasFailed: false };
    rendered.catch(() => {
      flight.hasFailed = true;
    });
    task.original.keepAlive(rendered);
    return flight;
  }

  /** Opens an unmodified original, without a body if the response has none. */
  async #openOriginal<Selected extends SelectedBytes>(
    request: MediaRequest,
    context: RequestContext<Selected>,
    ignoresRange: boolean,
  ): Promise<MediaResponse<Selected>> {
    const { blocks } = this.#services;
    const { onWait, original: selector } = context;
    if (selector === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    onWait?.(BYPASS);
    const isChecked = blocks?.hasDigestBlocks === true;
    const requested = selector.requestedBytes(ignoresRange);
    const original = await openPassthrough(this.#services, request, requested, context);
    const { originKey, url } = request;
    const sent = { originKey, url, sha256: original.sha256, etag: original.state };
    let hasBody = false;
    try {
      blocks?.check(sent);
      const selected = selector.select(original, request, ignoresRange);
      const { first, last } = selected;
      let body = selected.hasBody ? await original.stream(first, last) : undefined;
      if (body !== undefined && blocks?.hasDigestBlocks === true && !isChecked) {
        // The first block by SHA-256 was posted while the body was opened without a check.
        body.destroy();
        throw new OriginalReplaced();
      }
      if (body !== undefined && blocks !== undefined) body = blocks.watch(sent, body);
      hasBody = body !== undefined;
      return { kind: 'original', original, selected, body, outcome: BYPASS };
    } finally {
      if (!hasBody) original.discard();
    }
  }

  /** Returns a request whose response and trace are those of a missing original. */
  #hide({ media }: KeyedRequest, trace: RequestTrace): KeyedRequest {
    const absent = createAbsentRequest(media);
    trace.restart();
    if (!media.isPassthrough) this.findHit(absent, trace);
    return absent;
  }

  /** Returns the remaining freshness of another site's media in seconds, if any. */
  maxAgeOf({ originKey }: MediaRequest): number | undefined {
    const freshForMs = this.#services.records.findFreshForMs(originKey);
    return freshForMs && freshForMs / 1000;
  }
}

function asMediaError(error: unknown): MediaError {
  return error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
}
