import { MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import { type ResultAddress, validatorsOf } from '../../contract/result-key.ts';
import { containerOf, readImageHeader } from '../../formats/containers.ts';
import type { ImageHeader } from '../../formats/image-header.ts';
import { unlessAborted } from '../abort.ts';
import type { BufferedImage, LoadedOriginal, LoadedVideo } from '../originals/load-original.ts';
import type { OriginalServices } from '../originals/originals.ts';
import type { IdentifiedOriginal } from '../originals/remembered-original.ts';
import type { MediaResult, OriginalIdentity, StoredResult } from '../ports.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { Services } from '../services.ts';
import { type Plan, planMedia, planPoster, type RenderLimits, unsupported } from './plan.ts';
import { canDecodeVideo, inspectInSlot, renderInSlot, type SharedWork } from './run-in-slot.ts';

export interface RenderTask extends SharedWork {
  readonly request: MediaRequest;
  readonly cacheKey: string;
}

export interface Rendered {
  /** Omitted for a video that is sent unmodified. */
  readonly result?: MediaResult;
  /** Whether the result was in memory or in the store. */
  readonly isStored?: boolean;
  /** Whether the result is now in memory. */
  readonly isCached?: boolean | undefined;
}

/** Renders one result for all requests that wait for it. The comment at each stage lists its errors. */
export async function renderMedia(
  services: OriginalServices,
  task: RenderTask,
  identified: IdentifiedOriginal,
  rateLimitKey: (() => string) | undefined,
): Promise<Rendered> {
  const { originals, renderLimits, rates } = services;
  const { cacheKey, request, original, signal } = task;
  const stored = await findResult(services, task, identified.identity);
  if (stored !== undefined) return { result: stored, isStored: true };
  if (identified.failure !== undefined) throw identified.failure; // ORIGIN_ERROR, ORIGIN_TIMEOUT
  try {
    const loaded = await loadOriginal(task); // MEDIA_TOO_LARGE, OVERLOADED, ORIGIN_ERROR, ORIGIN_TIMEOUT
    // The read may have found other bytes than were identified.
    await originals.checkBytes(original, loaded, signal); // UNAVAILABLE, UNKNOWN_MEDIA
    if ('reader' in loaded && isSentUnmodified(request)) return {};
    if ('reader' in loaded) requireFormat(request); // UNSUPPORTED_MEDIA_TYPE
    // UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE_MEDIA
    const { plan, spentMs, unmodified } = await ('reader' in loaded
      ? planVideo(services, loaded, task)
      : planImage(loaded, task, renderLimits));
    if (plan.kind === 'refuse') {
      throw new MediaError(plan.code, { cause: new Error(plan.reason) });
    }
    let rendered: StoredResult | undefined;
    if (plan.kind === 'render') {
      const client = rates && rateLimitKey?.();
      const charge = client === undefined ? undefined : rates?.charge(client, plan.cost.typicalMs); // RATE_LIMITED
      // OVERLOADED, UNPROCESSABLE_MEDIA, MEDIA_TOO_LARGE, TRANSFORM_TIMEOUT; for a video ORIGIN_ERROR, ORIGIN_TIMEOUT
      rendered = await renderInSlot(services, plan, loaded, task, spentMs, charge).finally(() =>
        charge?.end(),
      );
    }
    const output = rendered ?? unmodified;
    if (output === undefined) throw new Error('The poster was not rendered.');
    if (output === unmodified) original.keepBytes();
    // The first block by SHA-256 may have been posted during the render.
    await originals.checkBytes(original, loaded, signal);
    return cacheResult(services, task, loaded, output, plan.kind === 'render');
  } catch (error) {
    original.keepBytes(); // a worker may still be receiving them
    original.refuse(cacheKey, error);
    throw error;
  }
}

/** Finds a result of this state in memory, or moves it there from the store. @throws `task.signal.reason` */
async function findResult(
  { caches, store, release }: Services,
  task: RenderTask,
  identity: OriginalIdentity,
): Promise<MediaResult | undefined> {
  const { cacheKey, signal, trace, original } = task;
  const known = caches.results.get(cacheKey);
  if (known?.originalEtag === identity.etag) return known;
  if (store === undefined || !original.backend.remembers) return undefined;
  const stored = await trace.stage('store', async (details) => {
    const found = await store.find(addressOf(task, identity, release), signal);
    details.memory = 'store';
    details.found = found !== undefined;
    if (found !== undefined) details.bytes = found.body.byteLength;
    return found;
  });
  if (stored === undefined) return undefined;
  const result = createResult(stored, identity, cacheKey, release);
  original.commitIfRemembered(() => caches.results.set(cacheKey, result));
  return result;
}

/**
 * Caches a result in memory, and a rendering in the store, unless the original was purged since. Unmodified
 * originals are not stored, since reading them from the origin costs the same.
 */
function cacheResult(
  { caches, store, release }: Services,
  task: RenderTask,
  identity: OriginalIdentity,
  output: StoredResult,
  isRendering: boolean,
): Rendered {
  const { cacheKey, trace, original } = task;
  const result = createResult(output, identity, cacheKey, release);
  const isCached = original.commitIfRemembered(() => {
    if (isRendering) store?.add(addressOf(task, identity, release), output, trace);
    return caches.results.set(cacheKey, result).has(cacheKey);
  });
  return { result, isCached };
}

function createResult(
  { body, mimeType }: StoredResult,
  identity: OriginalIdentity,
  cacheKey: string,
  release: string,
): MediaResult {
  const validators = validatorsOf(identity, cacheKey, release);
  return { body, mimeType, ...validators, originalEtag: identity.etag };
}

function addressOf(
  { cacheKey, request }: RenderTask,
  { etag }: OriginalIdentity,
  release: string,
): ResultAddress {
  return { originKey: request.originKey, cacheKey, originalEtag: etag, release };
}

interface Planned {
  readonly plan: Plan;
  /** Time in a slot in which the metadata was read. */
  readonly spentMs?: number;
  /** The image itself, if nothing would change, or a render would gain nothing. */
  readonly unmodified?: StoredResult;
}

/** Plans a poster by the metadata of a video, which a worker reads once for all renderings. */
async function planVideo(
  services: Services,
  { etag, reader }: LoadedVideo,
  { request, original, signal, trace }: RenderTask,
): Promise<Planned> {
  const { resource, format } = request;
  if (resourceRows[resource].query !== 'external' || format === undefined) {
    return { plan: unsupported('Assets have no posters; other media need a format for one.') };
  }
  if (!(await canDecodeVideo(services))) {
    return { plan: unsupported('No video decoder is available.') };
  }
  const { metadata, spentMs } = await trace.stage('facts', async (details) => {
    const inspecting = original.inspect(etag, (work) =>
      inspectInSlot(services, reader, { ...work, trace }),
    );
    const found = await unlessAborted(inspecting, signal);
    const { container, codec = '', video } = found.metadata;
    const { widthPx = 0, heightPx = 0 } = video?.size ?? {};
    Object.assign(details, { format: container, codec, widthPx, heightPx } satisfies StageDetails);
    return found;
  });
  return { plan: planPoster(metadata, request, services.renderLimits), spentMs };
}

/** Whether a request for a video returns the unmodified video (contract §12). */
export function isSentUnmodified({ widthPx, heightPx, format, quality }: MediaRequest): boolean {
  const isPicture = widthPx !== undefined || heightPx !== undefined || format !== undefined;
  return !isPicture && quality !== 'low';
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` without a format, which a poster needs (contract §12) */
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
  const header = await readHeader(bytes, trace);
  const unmodified = { body: bytes, mimeType: sourceFormats[header.format].mimeType };
  const plan = planMedia(header, request, limits);
  if (plan.kind === 'unmodified') containerOf(bytes)?.checkUndecoded?.(bytes);
  return { plan, unmodified };
}

/** Loads an original; a stage `origin` is timed only if the source is contacted. */
function loadOriginal({ original, signal, trace }: RenderTask): Promise<LoadedOriginal> {
  if (original.isInMemory) return unlessAborted(original.borrow(), signal);
  return trace.stage('origin', async (details) => {
    details.originPart = 'body';
    const loaded = await unlessAborted(original.borrow(), signal);
    details.bytes = 'bytes' in loaded ? loaded.bytes.byteLength : loaded.reader.sizeBytes;
    return loaded;
  });
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `UNPROCESSABLE_MEDIA` */
function readHeader(bytes: Uint8Array, trace: RequestTrace): Promise<ImageHeader> {
  return trace.stage('facts', async (details) => {
    const header = readImageHeader(bytes);
    if (header === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const { format, widthPx, heightPx, frames } = header;
    Object.assign(details, {
      bytes: bytes.byteLength,
      format,
      widthPx,
      heightPx,
      frames,
    } satisfies StageDetails);
    return header;
  });
}
