import { MediaError } from '../media/errors.ts';
import { readImageFacts } from '../media/header/read-image-facts.ts';
import { outputFormats, sourceFormats } from '../media/image-format.ts';
import type { MediaRequest } from '../media/media-request.ts';
import type { Admission } from './admission.ts';
import type { HeldOriginal } from './held-original.ts';
import { type Plan, planMedia, type RenderLimits } from './plan.ts';
import type { MediaResult, Renderer } from './ports.ts';
import type { RefusalMemory } from './refusal-memory.ts';
import { laneOf } from './render-cost.ts';
import type { RequestTrace } from './request-trace.ts';
import type { FlightControls } from './single-flight.ts';

/** What transforms are made with. */
export interface TransformerParts {
  readonly renderer: Renderer;
  readonly admission: Admission;
  readonly refusals: RefusalMemory;
  readonly limits: RenderLimits;
}

/** What belongs to one transform; its signal aborts when nobody waits for the result any more. */
export interface TransformOptions extends FlightControls {
  readonly trace: RequestTrace;
}

/** The answer's body, and what it is. */
export type Transformed = Pick<MediaResult, 'body' | 'mimeType'>;

/** From an original's bytes to an answer's: facts, limits, plan, render. */
export class Transformer {
  readonly #parts: TransformerParts;

  constructor(parts: TransformerParts) {
    this.#parts = parts;
  }

  /**
   * Gives the original what the request asks for; passes it through where that is nothing.
   *
   * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `MEDIA_TOO_LARGE`, `UNPROCESSABLE_MEDIA`,
   *   `OVERLOADED`, `TRANSFORM_TIMEOUT`; or `options.signal.reason`
   */
  async transform(
    request: MediaRequest,
    original: HeldOriginal,
    options: TransformOptions,
  ): Promise<Transformed> {
    const facts = readImageFacts(original.bytes);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const untouched = {
      body: original.bytes,
      mimeType: sourceFormats[facts.format].mimeType,
    };
    const plan = planMedia(facts, request, this.#parts.limits);
    switch (plan.kind) {
      case 'passthrough':
        return untouched;
      case 'refuse':
        throw new MediaError('MEDIA_TOO_LARGE', { cause: new Error(plan.reason) });
      case 'render': {
        const body = await this.#render(request.originKey, original, plan, options);
        return plan.isOnlyQuality && body.byteLength >= original.bytes.byteLength
          ? untouched
          : { body, mimeType: outputFormats[plan.job.format].mimeType };
      }
    }
  }

  /** A CPU slot is held from here to the end of encoding. */
  async #render(
    originKey: string,
    original: HeldOriginal,
    { job, cost }: Extract<Plan, { readonly kind: 'render' }>,
    { signal, keep, trace }: TransformOptions,
  ): Promise<Uint8Array> {
    const { admission, refusals, renderer } = this.#parts;
    const wanted = laneOf(cost, job);
    original.assign(wanted);
    const slot = await trace.time('queue', () => admission.enter(wanted, cost.typicalMs, signal));
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the line.
      refusals.checkOriginal(originKey);
      const rendering = trace.time('render', () =>
        renderer.render(original.bytes, job, { lane: slot.lane, signal }),
      );
      // For the store, whoever leaves: a new worker would cost more than what is left of it.
      if (wanted === 'light') keep(rendering);
      return await rendering;
    } finally {
      slot.leave();
    }
  }
}
