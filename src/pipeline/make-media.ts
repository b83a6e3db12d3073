import { MediaError } from '../contract/errors.ts';
import { type SourceFormat, sourceFormats } from '../contract/image-formats.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import {
  kindOf,
  type MadeMedia,
  type MediaTask,
  onceCharged,
  type PreparedMedia,
  readyMade,
} from './media-work.ts';
import type { OriginalIdentity } from './originals/metadata-cache.ts';
import type {
  HeldOriginal,
  IdentifiedOriginal,
  OpenedOriginal,
} from './originals/original-reader.ts';
import type { Charge } from './rates.ts';
import type { AdmittedRenderer } from './render/admitted-renderer.ts';
import { KnownFacts, readFacts } from './render/facts.ts';
import { type Plan, planMedia, type RenderLimits, type RenderPlan } from './render/plan.ts';
import type { NegativeCache } from './results/negative-cache.ts';
import type { Results } from './results/results.ts';

/** What results are made with. */
export interface MediaMakerParts {
  readonly results: Results;
  readonly negativeCache: NegativeCache;
  readonly renderer: AdmittedRenderer;
  readonly limits: RenderLimits;
  /** Whether it matters what renders will cost, before their originals are read. */
  readonly remembersCosts: boolean;
}

/** An original in memory, and what is to be done with it. */
interface PlannedMedia {
  readonly held: HeldOriginal;
  readonly plan: Exclude<Plan, { readonly kind: 'refuse' }>;
  readonly format: SourceFormat;
}

/**
 * Makes results of originals that are identified, in these stages; `MediaService` has those before them:
 *
 *     store → facts → limits → plan → charge → render → keep
 *
 * Each is done once, however many requests wait for the result; but for `charge`, which each request comes to by
 * itself, until one of them has paid.
 */
export class MediaMaker {
  readonly #parts: MediaMakerParts;
  readonly #facts = new KnownFacts();

  constructor(parts: MediaMakerParts) {
    this.#parts = parts;
  }

  /** Does what comes before a render, for requests that need a body. Where its cost is known, the original is not read yet. */
  async prepare(
    task: MediaTask,
    original: OpenedOriginal,
    { identity, wasAsked }: IdentifiedOriginal,
  ): Promise<PreparedMedia> {
    const stored = await this.#parts.results.find(task, identity);
    if (stored !== undefined) {
      const revalidated = { kind: 'stale', originStatus: 304, detail: 'store' } as const;
      const outcome = wasAsked ? revalidated : ({ kind: 'hit', detail: 'store' } as const);
      return readyMade({ result: stored, outcome });
    }
    const foreseen = this.foresee(task.request, identity);
    if (foreseen !== undefined) {
      return onceCharged(foreseen.cost, async (trace, charge) => {
        const paid = { ...task, trace };
        return this.#make(paid, await this.#plan(paid, original), charge);
      });
    }
    const planned = await this.#plan(task, original);
    if (planned.plan.kind === 'passthrough') return readyMade(await this.#make(task, planned));
    return onceCharged(planned.plan.cost, (trace, charge) =>
      this.#make({ ...task, trace }, planned, charge),
    );
  }

  /** Decides what is to be done with an original; beside each stage, what it may refuse with. */
  async #plan(task: MediaTask, original: OpenedOriginal): Promise<PlannedMedia> {
    const { negativeCache, limits, remembersCosts } = this.#parts;
    const { key, request, trace } = task;
    try {
      const held = await this.#read(task, original); // MEDIA_TOO_LARGE, OVERLOADED, ORIGIN_ERROR, ORIGIN_TIMEOUT
      const facts = readFacts(held.bytes, trace); // UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE_MEDIA
      if (remembersCosts && !task.isRetired()) this.#facts.note(request.originKey, held, facts);
      const plan = planMedia(facts, request, limits);
      if (plan.kind === 'refuse') {
        throw new MediaError(plan.code, { cause: new Error(plan.reason) });
      }
      return { held, plan, format: facts.format };
    } catch (error) {
      if (!task.isRetired()) negativeCache.note(key, request.originKey, error);
      throw error;
    }
  }

  /** Renders, or takes the original as it is. */
  async #make(
    task: MediaTask,
    { held, plan, format }: PlannedMedia,
    charge?: Charge,
  ): Promise<MadeMedia> {
    const { results, negativeCache, renderer } = this.#parts;
    const { key, known, request } = task;
    try {
      const isRendering = plan.kind === 'render';
      // OVERLOADED, UNPROCESSABLE_MEDIA, MEDIA_TOO_LARGE, TRANSFORM_TIMEOUT
      const rendered = isRendering ? await renderer.render(plan, held, task, charge) : undefined;
      const untouched = { body: held.bytes, mimeType: sourceFormats[format].mimeType };
      const { result, isKept } = results.keep(task, held, rendered ?? untouched, { isRendering });
      return { result, outcome: { kind: kindOf(known), stored: isKept } };
    } catch (error) {
      if (!task.isRetired()) negativeCache.note(key, request.originKey, error);
      throw error;
    }
  }

  /** The render that a request will need, by what is remembered of its original. */
  foresee(request: MediaRequest, { etag }: OriginalIdentity): RenderPlan | undefined {
    const facts = this.#facts.find(request.originKey, etag);
    const plan = facts && planMedia(facts, request, this.#parts.limits);
    return plan?.kind === 'render' ? plan : undefined;
  }

  /** Reads the original, unless its first frames show that its render would be refused. */
  async #read({ request, trace }: MediaTask, original: OpenedOriginal): Promise<HeldOriginal> {
    // Where nothing is asked of the origin, no time is spent there.
    if (original.isInMemory) return original.read();
    const { renderer } = this.#parts;
    return trace.time('origin', async (visit) => {
      visit.span?.setAttributes({ 'darkroom.origin.part': 'body' });
      const prefix = renderer.isCrowdedFor(request) ? await original.peek() : undefined;
      if (prefix !== undefined) renderer.checkAdmission(request, prefix);
      const held = await original.read();
      visit.span?.setAttributes({ 'darkroom.bytes': held.bytes.byteLength });
      return held;
    });
  }
}
