import {
  formatKeptMetadata,
  type KeptMetadata,
  type MediaMetadata,
  type MetadataQuestion,
  parseKeptMetadata,
} from '../../contract/metadata.ts';
import { encodeOriginKey } from '../../contract/result-key.ts';
import { unlessAborted } from '../abort.ts';
import { type Digests, sha256Of } from '../originals/digests.ts';
import type { OriginalFlight } from '../originals/original-flight.ts';
import { BLOCK_BYTES, type OriginalReader, replaced } from '../originals/original-reader.ts';
import type { Originals } from '../originals/originals.ts';
import type { OriginalRecords } from '../originals/records.ts';
import type { Clock, OriginalIdentity, ResultAddress } from '../ports.ts';
import type { AdmittedRenderer, WholeOriginal, Work } from '../render/admitted-renderer.ts';
import type { RenderLimits } from '../render/plan.ts';
import { RequestTrace } from '../request-trace.ts';
import type { GuardedStore } from '../results/store.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import { type Description, describe, pictureRequest, unlessUnreadable } from './describe.ts';

interface MetadataServiceParts {
  readonly originals: Originals;
  readonly records: OriginalRecords;
  readonly store: GuardedStore | undefined;
  readonly digests: Digests;
  readonly renderer: AdmittedRenderer;
  readonly limits: RenderLimits;
  readonly maxOriginalBytes: number;
  /** Largest original of which a digest is computed, in bytes. */
  readonly maxHashedBytes: number;
  readonly clock: Clock;
  readonly release: string;
}

interface Answering {
  readonly original: OriginalFlight;
  readonly metadata: Promise<MediaMetadata>;
}

/** Bytes that may be read for the facts of a header, whatever the bound of videos is. */
const HEAD_BYTES = 512 * 1024;

/** Longest edge of the picture that a ThumbHash is computed from (contract §13). */
const PLACEHOLDER_PX = 100;

const MAX_PLACEHOLDER_BYTES = 64;

/** A state of an original, with all that it takes to work on it. */
interface State {
  readonly identity: OriginalIdentity;
  readonly reader: OriginalReader;
  readonly work: Work;
  held?: WholeOriginal;
}

/** Tells the facts of originals (contract §13), which are computed once for each of their states. */
export class MetadataService {
  readonly #parts: MetadataServiceParts;
  readonly #flights = new SingleFlight<Answering>(({ original }) => !original.isInvalidated);

  constructor(parts: MetadataServiceParts) {
    this.#parts = parts;
  }

  /**
   * Asks the source for the state of an original, and describes it; equal questions at the same time share the work.
   *
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`, `TRANSFORM_TIMEOUT`; or
   *   `signal.reason`
   */
  async describe(question: MetadataQuestion, signal: AbortSignal): Promise<MediaMetadata> {
    for (;;) {
      const flight = this.#flights.join(JSON.stringify(question), (controls) => {
        const original = this.#parts.originals.begin(question, controls);
        const metadata = this.#answer(original, question, controls);
        return { original, metadata };
      });
      const { original, metadata } = flight.work;
      try {
        const answer = await unlessAborted(metadata, signal);
        // What was found out before a purge does not hold after it.
        if (!original.isInvalidated) return answer;
      } catch (error) {
        if (!original.isInvalidated || signal.aborted) throw error;
      } finally {
        flight.leave();
      }
    }
  }

  async #answer(
    original: OriginalFlight,
    question: MetadataQuestion,
    controls: FlightControls,
  ): Promise<MediaMetadata> {
    const { renderer, clock } = this.#parts;
    const { originKey, wantsPlaceholder, wantsSha256 } = question;
    const { identity, reader } = await original.openByRanges(HEAD_BYTES);
    const work = { original, ...controls, trace: new RequestTrace(clock) };
    const state: State = { identity, reader, work };
    let kept = await this.#findKept(state);
    const known = kept;
    let sha256: string | null = null;
    try {
      if (kept === undefined || (wantsPlaceholder && kept.placeholder === undefined)) {
        kept = { ...kept, ...(await this.#describe(state, wantsPlaceholder)) };
      }
      if (wantsSha256) sha256 = await this.#hash(state);
    } catch (error) {
      original.refuse(undefined, error);
      throw error;
    }
    if (kept !== known) this.#keep(state, kept);
    const { facts, isSound, placeholder = null } = kept;
    const shown = wantsPlaceholder ? placeholder : null;
    return {
      key: originKey,
      etag: `"${identity.etag}"`,
      ...facts,
      transformable: isSound && (facts.kind === 'image' || (await renderer.canDecodeVideo())),
      placeholder: shown,
      placeholder_version: shown === null ? null : 1,
      sha256,
    };
  }

  async #describe(state: State, wantsPlaceholder: boolean): Promise<KeptMetadata> {
    const { limits, renderer, maxOriginalBytes } = this.#parts;
    const { reader, work, identity } = state;
    const { original, signal } = work;
    let spentMs = 0;
    const description = await describe(
      {
        sizeBytes: reader.sizeBytes,
        read: (start, end) => reader.read(start, end, signal),
        readAll: async () => {
          if (reader.sizeBytes > maxOriginalBytes) return undefined;
          state.held = await this.#readImage(state);
          return state.held.bytes;
        },
        inspect: async () => {
          const inspected = await original.inspect(identity.etag, (controls) =>
            renderer.inspect(reader, { ...work, ...controls }),
          );
          spentMs = inspected.spentMs;
          return inspected.facts;
        },
      },
      limits,
      wantsPlaceholder,
    );
    const { facts, plan } = description;
    const { width: widthPx, height: heightPx } = facts;
    const isPicture = plan !== undefined && widthPx !== null && heightPx !== null;
    const request = isPicture
      ? // Not lossless: an original is never taken as it is.
        pictureRequest(original.originKey, { widthPx, heightPx }, PLACEHOLDER_PX, 'png', 'low')
      : undefined;
    const isSound =
      request !== undefined &&
      plan?.({ ...request, format: 'webp' }).kind !== 'refuse' &&
      (facts.kind === 'video' || reader.sizeBytes <= maxOriginalBytes);
    if (!wantsPlaceholder) return { facts, isSound };
    const isBlind = isSound && facts.kind === 'video' && !(await renderer.canDecodeVideo());
    // What lacks a decoder is not remembered: there may be one later.
    if (isBlind) return { facts, isSound };
    const planned = isSound ? plan?.(request) : undefined;
    const placeholder = await this.#renderPlaceholder(state, planned, spentMs);
    return { facts, isSound: placeholder !== null, placeholder };
  }

  /** Returns the ThumbHash; `null` where the picture is damaged, or has none. */
  async #renderPlaceholder(
    { held, reader, work }: State,
    plan: ReturnType<NonNullable<Description['plan']>> | undefined,
    spentMs: number,
  ): Promise<string | null> {
    if (plan?.kind !== 'render') return null;
    const job = { ...plan.job, isPlaceholder: true };
    const rendering = { ...plan, job, isOnlyQuality: false };
    const rendered = await unlessUnreadable(() =>
      this.#parts.renderer.render(rendering, held ?? { reader }, work, undefined, spentMs),
    );
    if (rendered === undefined || rendered.body.byteLength > MAX_PLACEHOLDER_BYTES) return null;
    return Buffer.from(rendered.body).toString('base64').replace(/=+$/, '');
  }

  /** Reads an image whole, unless its first block is all of it. */
  async #readImage({ reader, identity, work }: State): Promise<WholeOriginal> {
    const { sizeBytes } = reader;
    if (sizeBytes <= BLOCK_BYTES) return { bytes: await reader.read(0, sizeBytes, work.signal) };
    const held = await work.original.load();
    if ('bytes' in held && held.etag === identity.etag) return held;
    throw replaced();
  }

  /** Returns the SHA-256; `null` for an original that is too large. */
  async #hash({ held, identity, reader, work }: State): Promise<string | null> {
    const { digests, maxHashedBytes } = this.#parts;
    const { sizeBytes } = reader;
    const { originKey } = work.original;
    if (sizeBytes > maxHashedBytes) return null;
    const known = await digests.find(originKey, identity.etag, work.signal);
    if (known !== undefined) return known;
    const isShort = sizeBytes <= BLOCK_BYTES;
    const bytes = held?.bytes ?? (isShort && (await reader.read(0, sizeBytes, work.signal)));
    const sha256 = bytes ? sha256Of(bytes) : await reader.hash();
    digests.noteOf(work.original, identity.etag, sha256);
    return sha256;
  }

  /** Returns what is remembered of a state, here or in the store. */
  async #findKept({ identity, work }: State): Promise<KeptMetadata | undefined> {
    const { records, store } = this.#parts;
    const { originKey } = work.original;
    const known = records.findDetails(originKey, identity.etag)?.metadata;
    if (known !== undefined || store === undefined) return known;
    const stored = await store.find(this.#addressOf(originKey, identity), work.signal);
    const metadata = stored && parseKeptMetadata(stored.body);
    if (metadata !== undefined) work.original.remember(identity.etag, { metadata });
    return metadata;
  }

  #keep({ identity, work }: State, metadata: KeptMetadata): void {
    const { store } = this.#parts;
    const { original, trace } = work;
    original.remember(identity.etag, { metadata });
    const stored = { body: formatKeptMetadata(metadata), mimeType: 'application/json' };
    original.commit(() => store?.add(this.#addressOf(original.originKey, identity), stored, trace));
  }

  #addressOf(originKey: string, { etag }: OriginalIdentity): ResultAddress {
    const { release } = this.#parts;
    return { originKey, key: keyOf(originKey), originalEtag: etag, release };
  }
}

function keyOf(originKey: string): string {
  return `${encodeOriginKey(originKey)}?metadata`;
}
