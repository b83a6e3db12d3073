import { MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import { containerOf, readImageFacts } from '../../formats/containers.ts';
import type { ImageFacts } from '../../formats/image-facts.ts';
import { unlessAborted } from '../abort.ts';
import type { BlockGuard } from '../blocks/block-guard.ts';
import type { BufferedImage, LoadedOriginal, LoadedVideo } from '../originals/load-original.ts';
import type { IdentifiedOriginal } from '../originals/original-flight.ts';
import type { Originals } from '../originals/originals.ts';
import type { MediaResult, StoredResult } from '../ports.ts';
import type { Rates } from '../rates.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { RenderTask, Results } from '../results/results.ts';
import type { AdmittedRenderer } from './admitted-renderer.ts';
import {
  type Plan,
  planMedia,
  planPoster as planPosterOf,
  type RenderLimits,
  unsupported,
} from './plan.ts';

export interface RenderParts {
  readonly results: Results;
  readonly originals: Originals;
  readonly renderer: AdmittedRenderer;
  readonly limits: RenderLimits;
  /** Omit where nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  /** Omit to let all clients render what they like. */
  readonly rates: Rates | undefined;
}

/** Result of a render task. */
export interface Rendered {
  /** Without a result, the original is sent unmodified: a video of which nothing else was requested. */
  readonly result?: MediaResult;
  /** Whether the result existed before: in memory or in the store. */
  readonly isStored?: boolean;
  /** Whether the result is in memory now. */
  readonly isKept?: boolean | undefined;
}

/**
 * Renders one result, once for all requests that wait for it; next to each stage, the errors that it may end with.
 *
 * @param rateLimitKey returns the client to charge
 */
export async function renderMedia(
  parts: RenderParts,
  task: RenderTask,
  identified: IdentifiedOriginal,
  rateLimitKey: (() => string) | undefined,
): Promise<Rendered> {
  const { originals, results, limits, renderer, rates } = parts;
  const { key, request, original, signal } = task;
  const stored = await results.find(task, identified.identity);
  if (stored !== undefined) return { result: stored, isStored: true };
  if (identified.failure !== undefined) throw identified.failure; // ORIGIN_ERROR, ORIGIN_TIMEOUT
  try {
    const held = await readOriginal(task); // MEDIA_TOO_LARGE, OVERLOADED, ORIGIN_ERROR, ORIGIN_TIMEOUT
    // The read may have found other bytes than those that were identified.
    await originals.checkBytes(original, held, signal); // UNAVAILABLE, UNKNOWN_MEDIA
    if ('reader' in held && isUnchanged(request)) return {};
    if ('reader' in held) requireFormat(request); // UNSUPPORTED_MEDIA_TYPE
    // UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE_MEDIA
    const { plan, spentMs, untouched } = await ('reader' in held
      ? planPoster(parts, held, task)
      : planImage(held, task, limits));
    if (plan.kind === 'refuse') {
      throw new MediaError(plan.code, { cause: new Error(plan.reason) });
    }
    let rendered: Awaited<ReturnType<AdmittedRenderer['render']>>;
    if (plan.kind === 'render') {
      const client = rateLimitKey?.();
      const charge = client === undefined ? undefined : rates?.charge(client, plan.cost.typicalMs); // RATE_LIMITED
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
    return { result, isKept };
  } catch (error) {
    original.refuse(key, error);
    throw error;
  }
}

/** Plans a poster from the facts of a video, which a worker reads once for all renderings. */
async function planPoster(
  { renderer, limits }: RenderParts,
  { etag, reader }: LoadedVideo,
  { request, original, signal, trace }: RenderTask,
): Promise<Planned> {
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
  return { plan: planPosterOf(facts, request, limits), spentMs };
}

/** A plan, and the time that reading the facts took in a slot. */
interface Planned {
  readonly plan: Plan;
  readonly spentMs?: number;
  /** The image itself, where nothing would change, or a render gains nothing. */
  readonly untouched?: StoredResult;
}

/** Whether a video is sent unmodified: the request has no more than a quality that loses little (contract §12). */
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
  { request, trace }: RenderTask,
  limits: RenderLimits,
): Promise<Planned> {
  const facts = await readFacts(bytes, trace);
  const untouched = { body: bytes, mimeType: sourceFormats[facts.format].mimeType };
  const plan = planMedia(facts, request, limits);
  if (plan.kind === 'passthrough') containerOf(bytes)?.checkUndecoded?.(bytes);
  return { plan, untouched };
}

/** Reads an original; the time of its source counts only if the source is contacted. */
function readOriginal({ original, signal, trace }: RenderTask): Promise<LoadedOriginal> {
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
