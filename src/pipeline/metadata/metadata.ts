import type { CachedMetadata, MediaMetadata, MetadataRequest } from '../../contract/metadata.ts';
import { unlessAborted } from '../abort.ts';
import { sha256Of } from '../originals/digests.ts';
import { noteDigest, openByRanges } from '../originals/load-original.ts';
import type { OriginalFlight } from '../originals/original-flight.ts';
import type { OriginalReader } from '../originals/original-reader.ts';
import type { OriginalServices } from '../originals/originals.ts';
import { replaced } from '../originals/replaced.ts';
import { BLOCK_BYTES } from '../originals/sequential-body.ts';
import type { OriginalIdentity } from '../ports.ts';
import {
  type BufferedOriginal,
  canDecodeVideo,
  inspectInSlot,
  renderInSlot,
  type SharedWork,
} from '../render/run-in-slot.ts';
import { RequestTrace } from '../request-trace.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import { type Description, describe, pictureRequest, unlessUnreadable } from './describe.ts';

interface MetadataFlight {
  readonly original: OriginalFlight;
  readonly metadata: Promise<MediaMetadata>;
}

export type MetadataService = ReturnType<typeof createMetadataService>;

/** Minimum limit of reads for a header, regardless of the limit for videos. */
const HEAD_BYTES = 512 * 1024;

/** Maximum edge of the picture from which a ThumbHash is computed (contract §13). */
const PLACEHOLDER_PX = 100;

const MAX_PLACEHOLDER_BYTES = 64;

interface State {
  readonly identity: OriginalIdentity;
  readonly reader: OriginalReader;
  readonly work: SharedWork;
  loaded?: BufferedOriginal;
}

/** Creates the service for metadata (contract §13), which computes them once for each state. */
export function createMetadataService(services: OriginalServices) {
  const { originals, details: store, renderLimits, storage, maxHashedBytes, clock } = services;
  const { maxOriginalBytes } = storage;
  const flights = new SingleFlight<MetadataFlight>(({ original }) => !original.isInvalidated);

  /**
   * Requests the state of an original from its source, and describes it. Equal concurrent requests share the work.
   *
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`, `TRANSFORM_TIMEOUT`; or
   *   `signal.reason`
   */
  async function describeOriginal(
    query: MetadataRequest,
    signal: AbortSignal,
  ): Promise<MediaMetadata> {
    for (;;) {
      const flight = flights.join(JSON.stringify(query), (controls) => {
        const original = originals.begin(query, controls);
        const metadata = compute(original, query, controls);
        return { original, metadata };
      });
      const { original, metadata } = flight.work;
      try {
        const found = await unlessAborted(metadata, signal);
        // Nothing from before a purge is returned.
        if (!original.isInvalidated) return found;
      } catch (error) {
        if (!original.isInvalidated || signal.aborted) throw error;
      } finally {
        flight.leave();
      }
    }
  }

  async function compute(
    original: OriginalFlight,
    query: MetadataRequest,
    controls: FlightControls,
  ): Promise<MediaMetadata> {
    const { originKey, wantsPlaceholder, wantsSha256 } = query;
    const { identity, reader } = await openByRanges(original, HEAD_BYTES);
    const work = { original, ...controls, trace: new RequestTrace(clock) };
    const state: State = { identity, reader, work };
    let kept = await store.find(original, identity.etag, 'metadata', controls.signal);
    const known = kept;
    let sha256: string | null = null;
    try {
      if (kept === undefined || (wantsPlaceholder && kept.placeholder === undefined)) {
        kept = { ...kept, ...(await deriveMetadata(state, wantsPlaceholder)) };
      }
      if (wantsSha256) sha256 = await hash(state);
    } catch (error) {
      original.refuse(undefined, error);
      throw error;
    }
    if (kept !== known) store.put(original, identity.etag, 'metadata', kept);
    const { facts, isSound, placeholder = null } = kept;
    const shown = wantsPlaceholder ? placeholder : null;
    return {
      key: originKey,
      etag: `"${identity.etag}"`,
      ...facts,
      transformable: isSound && (facts.kind === 'image' || (await canDecodeVideo(services))),
      placeholder: shown,
      placeholder_version: shown === null ? null : 1,
      sha256,
    };
  }

  async function deriveMetadata(state: State, wantsPlaceholder: boolean): Promise<CachedMetadata> {
    const { reader, work, identity } = state;
    const { original, signal } = work;
    let spentMs = 0;
    const description = await describe(
      {
        sizeBytes: reader.sizeBytes,
        read: (start, end) => reader.read(start, end, signal),
        readAll: async () => {
          if (reader.sizeBytes > maxOriginalBytes) return undefined;
          state.loaded = await readImage(state);
          return state.loaded.bytes;
        },
        inspect: async () => {
          const inspected = await original.inspect(identity.etag, (controls) =>
            inspectInSlot(services, reader, { ...work, ...controls }),
          );
          spentMs = inspected.spentMs;
          return inspected.metadata;
        },
      },
      renderLimits,
      wantsPlaceholder,
    );
    const { metadata, plan } = description;
    const { width: widthPx, height: heightPx } = metadata;
    const isPicture = plan !== undefined && widthPx !== null && heightPx !== null;
    const request = isPicture
      ? // Not lossless, so that no original is sent unmodified.
        pictureRequest(original.originKey, { widthPx, heightPx }, PLACEHOLDER_PX, 'png', 'low')
      : undefined;
    const isSound =
      request !== undefined &&
      plan?.({ ...request, format: 'webp' }).kind !== 'refuse' &&
      (metadata.kind === 'video' || reader.sizeBytes <= maxOriginalBytes);
    if (!wantsPlaceholder) return { facts: metadata, isSound };
    const lacksDecoder = isSound && metadata.kind === 'video' && !(await canDecodeVideo(services));
    // Not remembered, since a decoder may be installed later.
    if (lacksDecoder) return { facts: metadata, isSound };
    const planned = isSound ? plan?.(request) : undefined;
    const placeholder = await renderPlaceholder(state, planned, spentMs);
    return { facts: metadata, isSound: placeholder !== null, placeholder };
  }

  /** Returns the ThumbHash; `null` if the picture is damaged or missing. */
  async function renderPlaceholder(
    { loaded, reader, work }: State,
    plan: ReturnType<NonNullable<Description['plan']>> | undefined,
    spentMs: number,
  ): Promise<string | null> {
    if (plan?.kind !== 'render') return null;
    const job = { ...plan.job, isPlaceholder: true };
    const rendering = { ...plan, job, isOnlyQuality: false };
    const rendered = await unlessUnreadable(() =>
      renderInSlot(services, rendering, loaded ?? { reader }, work, spentMs),
    );
    if (rendered === undefined || rendered.body.byteLength > MAX_PLACEHOLDER_BYTES) return null;
    return Buffer.from(rendered.body).toString('base64').replace(/=+$/, '');
  }

  /** Loads an image, unless its first block is the complete file. */
  async function readImage({ reader, identity, work }: State): Promise<BufferedOriginal> {
    const { sizeBytes } = reader;
    if (sizeBytes <= BLOCK_BYTES) return { bytes: await reader.read(0, sizeBytes, work.signal) };
    const loaded = await work.original.load();
    if ('bytes' in loaded && loaded.etag === identity.etag) return loaded;
    throw replaced();
  }

  /** Returns the SHA-256; `null` for an original above the maximum size. */
  async function hash({ loaded, identity, reader, work }: State): Promise<string | null> {
    const { sizeBytes } = reader;
    if (sizeBytes > maxHashedBytes) return null;
    const known = await store.find(work.original, identity.etag, 'sha256', work.signal);
    if (known !== undefined) return known;
    const isShort = sizeBytes <= BLOCK_BYTES;
    const bytes = loaded?.bytes ?? (isShort && (await reader.read(0, sizeBytes, work.signal)));
    const sha256 = bytes ? sha256Of(bytes) : await reader.hash();
    noteDigest(store, work.original, identity.etag, sha256);
    return sha256;
  }

  return { describe: describeOriginal };
}
