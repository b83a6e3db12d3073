import { MediaError } from '../contract/errors.ts';
import { sourceFormats } from '../contract/image-formats.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import { resourceRows } from '../contract/resources.ts';
import type { ImageFacts } from '../formats/image-facts.ts';
import { containerOf, readImageFacts } from '../formats/read-image-facts.ts';
import { unlessAborted } from './abort.ts';
import type { BlockGuard } from './blocks/block-guard.ts';
import type { BufferedImage, LoadedOriginal, LoadedVideo } from './originals/load-original.ts';
import type { IdentifiedOriginal, OriginalFlight } from './originals/original-flight.ts';
import { isReplaced } from './originals/original-reader.ts';
import type { Originals } from './originals/originals.ts';
import type { OriginalRecords } from './originals/records.ts';
import type { Clock, MediaResult, StoredResult } from './ports.ts';
import type { Rates } from './rates.ts';
import type { AdmittedRenderer } from './render/admitted-renderer.ts';
import { type Plan, planMedia, planPoster, type RenderLimits, unsupported } from './render/plan.ts';
import type { CacheOutcome, RequestTrace, StageDetails } from './request-trace.ts';
import type { MediaTask, Results, Validators } from './results/results.ts';
import { type FlightControls, SingleFlight } from './single-flight.ts';

/** Demands of one request, beside what it asks for. */
interface Ask {
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Whether the request has a condition, so that the identity of the original may be all that it needs. */
  readonly isConditional: boolean;
  /** Whether the client has this state of a response that may still have to be made. */
  readonly isCurrent: (validators: Validators) => boolean;
  /** Returns who is charged for a render that this request begins; called only then. `undefined`: nobody is. */
  readonly client: (() => string) | undefined;
}

/** A response: a body, the news that the client's is current, or that the original is to be sent unchanged. */
type Served =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'current'; readonly validators: Validators }
  | { readonly kind: 'result'; readonly result: MediaResult };

interface MediaServiceParts {
  readonly results: Results;
  readonly records: OriginalRecords;
  readonly originals: Originals;
  readonly renderer: AdmittedRenderer;
  readonly limits: RenderLimits;
  readonly clock: Clock;
  readonly blocks: BlockGuard | undefined;
  /** `undefined`: all may render what they like. */
  readonly rates: Rates | undefined;
}

interface MadeMedia {
  /** `undefined`: the original is sent unchanged, a video of which nothing else was asked. */
  readonly result: MediaResult | undefined;
  readonly outcome: CacheOutcome;
}

interface Making {
  readonly made: Promise<MadeMedia>;
  /** Trace of the request that began it. */
  readonly leader: RequestTrace;
  readonly original: OriginalFlight;
  hasFailed: boolean;
}

/**
 * Serves every media request that may need a transform, in these stages:
 *
 *     parse → look up → identify the original → join → store → facts → plan → charge → render → respond
 *
 * The first and the last are HTTP's. To identify an original is done once for all its renderings, and what follows once
 * per result, however many requests wait for it.
 */
export class MediaService {
  readonly #parts: MediaServiceParts;
  readonly #flights = new SingleFlight<Making>(
    ({ hasFailed, original }) => !hasFailed && !original.isInvalidated,
  );

  constructor(parts: MediaServiceParts) {
    this.#parts = parts;
  }

  /** Looks up a result in memory that is known to be current. Nothing waits before this, or here. */
  findHit(request: MediaRequest, key: string, trace: RequestTrace): MediaResult | undefined {
    const { clock } = this.#parts;
    const sinceMs = clock.nowMs();
    const known = this.#parts.results.lookUp(key);
    const identity = known && this.#parts.records.findFresh(request.originKey);
    trace.add('store', clock.nowMs() - sinceMs);
    const isFresh = known !== undefined && identity?.etag === known.originalEtag;
    if (isFresh && this.#isJudged(request, known)) {
      trace.outcome = { kind: 'hit' };
      return known;
    }
    // A hit shows no stages in a trace.
    trace.add('store', 0, { memory: 'results', found: known !== undefined });
    return undefined;
  }

  /**
   * Whether the bytes of a result's original are known not to be blocked.
   *
   * @throws MediaError `UNAVAILABLE`, `UNKNOWN_MEDIA` if they are
   */
  #isJudged({ originKey }: MediaRequest, result: MediaResult): boolean {
    const { blocks, records } = this.#parts;
    if (blocks?.judgesBytes !== true) return true;
    const sha256 = records.findSha256(originKey, result.originalEtag);
    blocks.checkDigest(sha256);
    return sha256 !== undefined;
  }

  /**
   * Serves what `findHit` has not found: joins the work on it, or begins it.
   *
   * @throws MediaError of any stage; `ask.signal.reason` when the client has gone
   */
  async serve(request: MediaRequest, key: string, ask: Ask): Promise<Served> {
    let hasBeenReplaced = false;
    for (;;) {
      ask.trace.outcome = { kind: 'hit' };
      this.#parts.blocks?.check(request); // UNAVAILABLE, which may come while a request waits
      this.#parts.records.throwIfRefused(key, request.originKey); // what was refused lately: 404, 415, 422, 504
      const { work: original, isJoined, leave } = this.#parts.originals.join(request);
      try {
        const served = await this.#serve({ request, key, original }, ask, isJoined);
        // What was found out before a purge is not served after it.
        if (!original.isInvalidated) return served;
      } catch (error) {
        if (!original.isInvalidated || ask.signal.aborted) throw error;
        // The facts may have been remembered from before; fresh ones are tried once.
        if (isReplaced(error) && hasBeenReplaced) throw error;
        hasBeenReplaced ||= isReplaced(error);
      } finally {
        leave();
      }
    }
  }

  async #serve(
    wanted: Pick<MediaTask, 'request' | 'key' | 'original'>,
    ask: Ask,
    isJoined: boolean,
  ): Promise<Served> {
    const { originals, results } = this.#parts;
    const { key, original } = wanted;
    const { signal, trace } = ask;
    const known = results.get(key);
    const kind = known === undefined ? 'miss' : 'stale';
    trace.outcome = { kind, collapsed: isJoined };
    const hasResult = known !== undefined;
    const isIdentityEnough = hasResult || results.isPersistent || ask.isConditional;
    const identifying = original.identify({ isIdentityEnough, hasResult, trace });
    const identified = await unlessAborted(identifying, signal).catch((error: unknown) => {
      // Other sites' originals are read whole to be identified, and may be refused by that.
      original.refuse(key, error);
      throw error; // UNKNOWN_MEDIA, ORIGIN_ERROR, ORIGIN_TIMEOUT, OVERLOADED; UNSUPPORTED_MEDIA_TYPE, MEDIA_TOO_LARGE
    });
    const { contactedOrigin, failure } = identified;
    const identity = await originals.checkBytes(original, identified.identity, signal); // UNAVAILABLE, UNKNOWN_MEDIA
    if (known?.originalEtag === identity.etag) {
      trace.outcome = collapse(confirmed(identified), isJoined);
      return { kind: 'result', result: known };
    }
    const validators = results.validatorsOf(identity, key);
    if (failure === undefined && ask.isCurrent(validators)) {
      trace.outcome = contactedOrigin ? { kind, collapsed: isJoined } : { kind: 'hit' };
      return { kind: 'current', validators };
    }
    const result = await this.#joinMaking(wanted, { ...identified, identity }, ask, kind);
    return result === undefined ? { kind: 'unchanged' } : { kind: 'result', result };
  }

  /** Waits for the result, made by this request or by another one that came before. */
  async #joinMaking(
    wanted: Pick<MediaTask, 'request' | 'key' | 'original'>,
    identified: IdentifiedOriginal,
    ask: Ask,
    kind: 'miss' | 'stale',
  ): Promise<MediaResult | undefined> {
    const { trace, signal } = ask;
    const begin = (controls: FlightControls): Making => {
      const made = this.#make({ ...wanted, ...controls, trace }, identified, ask, kind);
      const making = { made, leader: trace, original: wanted.original, hasFailed: false };
      made.catch(() => {
        making.hasFailed = true;
      });
      wanted.original.keepFor(made);
      return making;
    };
    for (;;) {
      signal.throwIfAborted();
      const { work: making, isJoined, leave } = this.#flights.join(wanted.key, begin);
      trace.outcome = { kind, collapsed: isJoined };
      const wait = (): Promise<MadeMedia> => unlessAborted(making.made, signal);
      try {
        const { result, outcome } = await (isJoined
          ? trace.stage('join', wait, making.leader)
          : wait());
        trace.outcome = collapse(outcome, isJoined);
        return result;
      } catch (error) {
        // That another client has nothing left is no refusal of this one.
        const isOthers = error instanceof MediaError && error.code === 'RATE_LIMITED' && isJoined;
        if (!isOthers) throw error;
      } finally {
        leave();
      }
    }
  }

  /** Makes a result, once for all that wait for it; beside each stage, what it may refuse with. */
  async #make(
    task: MediaTask,
    identified: IdentifiedOriginal,
    ask: Ask,
    kind: 'miss' | 'stale',
  ): Promise<MadeMedia> {
    const { originals, results, limits, renderer, rates } = this.#parts;
    const { key, request, original, signal } = task;
    const stored = await results.find(task, identified.identity);
    if (stored !== undefined) return { result: stored, outcome: confirmed(identified, 'store') };
    if (identified.failure !== undefined) throw identified.failure; // ORIGIN_ERROR, ORIGIN_TIMEOUT
    try {
      const held = await readOriginal(task); // MEDIA_TOO_LARGE, OVERLOADED, ORIGIN_ERROR, ORIGIN_TIMEOUT
      // The read may have found other bytes than those that were identified.
      await originals.checkBytes(original, held, signal); // UNAVAILABLE, UNKNOWN_MEDIA
      if ('reader' in held && isUnchanged(request)) return { result: undefined, outcome: { kind } };
      if ('reader' in held) requireFormat(request); // UNSUPPORTED_MEDIA_TYPE
      // UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE_MEDIA
      const { plan, spentMs, untouched } = await ('reader' in held
        ? this.#planPoster(held, task)
        : planImage(held, task, limits));
      if (plan.kind === 'refuse') {
        throw new MediaError(plan.code, { cause: new Error(plan.reason) });
      }
      let rendered: Awaited<ReturnType<AdmittedRenderer['render']>>;
      if (plan.kind === 'render') {
        const client = ask.client?.();
        const charge =
          client === undefined ? undefined : rates?.charge(client, plan.cost.typicalMs); // RATE_LIMITED
        // OVERLOADED, UNPROCESSABLE_MEDIA, MEDIA_TOO_LARGE, TRANSFORM_TIMEOUT; for a video ORIGIN_ERROR, ORIGIN_TIMEOUT
        rendered = await renderer
          .render(plan, held, task, charge, spentMs)
          .finally(() => charge?.end());
      }
      const isRendering = plan.kind === 'render';
      const made = rendered ?? untouched;
      if (made === undefined) throw new Error('A poster has not been rendered.');
      // The first block by SHA-256 may have been posted during the render.
      await originals.checkBytes(original, held, signal);
      const { result, isKept } = results.keep(task, held, made, { isRendering });
      return { result, outcome: { kind, stored: isKept } };
    } catch (error) {
      original.refuse(key, error);
      throw error;
    }
  }

  /** Plans a poster from the facts of a video, which a worker reads once for all renderings. */
  async #planPoster(
    { etag, reader }: LoadedVideo,
    { request, original, signal, trace }: MediaTask,
  ): Promise<Planned> {
    const { renderer, limits } = this.#parts;
    const { resource, format } = request;
    if (resourceRows[resource].query !== 'external' || format === undefined) {
      return { plan: unsupported('Assets have no posters, and others only in a format.') };
    }
    if (!(await renderer.canDecodeVideo())) {
      return { plan: unsupported('There is no decoder of videos here.') };
    }
    const { facts, spentMs } = await trace.stage('facts', async (details) => {
      const inspecting = original.inspect(etag, (work) =>
        renderer.inspect(reader, { ...work, trace }),
      );
      const found = await unlessAborted(inspecting, signal);
      const { container, codec, video } = found.facts;
      Object.assign(details, {
        format: container,
        codec: codec ?? '',
        widthPx: video?.size.widthPx ?? 0,
        heightPx: video?.size.heightPx ?? 0,
      } satisfies StageDetails);
      return found;
    });
    return { plan: planPoster(facts, request, limits), spentMs };
  }

  /** Returns how long another site's media may still be kept, in seconds; `undefined` where the site's word does not hold. */
  maxAgeOf({ originKey }: MediaRequest): number | undefined {
    const freshForMs = this.#parts.records.findFreshForMs(originKey);
    return freshForMs && freshForMs / 1000;
  }
}

/** A plan, and the time that reading the facts took in a slot. */
interface Planned {
  readonly plan: Plan;
  readonly spentMs?: number;
  /** The image itself, where nothing would change, or a render gains nothing. */
  readonly untouched?: StoredResult;
}

/** Whether a video is sent as it is: nothing but a quality was asked that loses little (contract §12). */
function isUnchanged({ widthPx, heightPx, format, quality }: MediaRequest): boolean {
  const isPicture = widthPx !== undefined || heightPx !== undefined || format !== undefined;
  return !isPicture && quality !== 'low';
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` for a video without a format, as a poster needs one (contract §12) */
function requireFormat({ format }: MediaRequest): void {
  if (format !== undefined) return;
  const message = 'The original is a video: add format to the URL to get its poster.';
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { message });
}

async function planImage(
  { bytes }: BufferedImage,
  { request, trace }: MediaTask,
  limits: RenderLimits,
): Promise<Planned> {
  const facts = await readFacts(bytes, trace);
  const untouched = { body: bytes, mimeType: sourceFormats[facts.format].mimeType };
  const plan = planMedia(facts, request, limits);
  if (plan.kind === 'passthrough') containerOf(bytes)?.checkUndecoded?.(bytes);
  return { plan, untouched };
}

/** Reads an original; where nothing is asked of its source, no time is spent there. */
function readOriginal({ original, signal, trace }: MediaTask): Promise<LoadedOriginal> {
  if (original.isInMemory) return unlessAborted(original.load(), signal);
  return trace.stage('origin', async (details) => {
    details.originPart = 'body';
    const held = await unlessAborted(original.load(), signal);
    details.bytes = 'bytes' in held ? held.bytes.byteLength : held.reader.sizeBytes;
    return held;
  });
}

/**
 * Reads the facts of an original.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `UNPROCESSABLE_MEDIA`
 */
function readFacts(bytes: Uint8Array, trace: RequestTrace): Promise<ImageFacts> {
  return trace.stage('facts', async (details) => {
    const facts = readImageFacts(bytes);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const { format, widthPx, heightPx, frames } = facts;
    const { byteLength } = bytes;
    Object.assign(details, {
      bytes: byteLength,
      format,
      widthPx,
      heightPx,
      frames,
    } satisfies StageDetails);
    return facts;
  });
}

/** Notes in an outcome whether the request joined another one; a hit joins none. */
function collapse(outcome: CacheOutcome, isJoined: boolean): CacheOutcome {
  return outcome.kind === 'hit' ? outcome : { ...outcome, collapsed: isJoined };
}

/** Outcome of a result that was made before: its original is as it was, or cannot be asked for. */
function confirmed(
  { contactedOrigin, failure }: IdentifiedOriginal,
  detail?: 'store',
): CacheOutcome {
  if (failure !== undefined)
    return { kind: contactedOrigin ? 'stale' : 'hit', detail: 'stale-if-error' };
  return contactedOrigin ? { kind: 'stale', originStatus: 304, detail } : { kind: 'hit', detail };
}
