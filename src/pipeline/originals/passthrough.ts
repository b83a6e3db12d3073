import { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { PIPELINE_RELEASE, sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resultKey } from '../../contract/result-key.ts';
import { unlessAborted } from '../abort.ts';
import type { BlockGuard } from '../blocks/block-guard.ts';
import type { ByteRange, Opened } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { type Validators, validatorsOf } from '../results/results.ts';
import { type Backends, locateOriginal, type OriginalLocation } from './backend.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import { sha256Of, stateOf } from './digests.ts';
import type { FactStore } from './fact-store.ts';
import type { MemoryBudget } from './memory-budget.ts';
import {
  bufferBeginning,
  discard,
  isStream,
  lengthOf,
  openContent,
  withBodyDeadline,
} from './open-body.ts';
import type { Originals } from './originals.ts';
import { passBody, takePrefix } from './pass-body.ts';
import type { Beginning, OriginalRecords } from './records.ts';

/** An original that is sent byte for byte. */
export interface PassthroughMedia {
  readonly validators: Validators;
  /** `undefined` if another site does not tell. */
  readonly sizeBytes: number | undefined;
  readonly contentType: string;
  /** State under which the digest of the bytes may be remembered. */
  readonly state: string | undefined;
  /** Digest of the bytes, hexadecimal, if blocks are judged by it. */
  readonly sha256?: string | undefined;
  /** Whether the source gives parts. */
  readonly hasRanges: boolean;
  /** Seconds for which clients may keep the original, if another site limits that. */
  readonly maxAgeSeconds: number | undefined;
  /**
   * Opens the bytes `first` to `last`, both included, or to the end; the receiver's pace is the source's pace.
   *
   * @throws MediaError as `Source.open` does; `OriginalReplaced` if the original must be opened anew
   */
  readonly stream: (first: number, last: number | undefined) => Promise<Readable>;
  /** Releases the source without reading. */
  readonly discard: () => void;
}

export interface PassthroughOptions {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /**
   * Whether the whole body is likely to be sent. If not (a HEAD, a range, a condition), only the first bytes are read at
   * first: enough to respond, and no transfer has to be broken off.
   */
  readonly isWhole: boolean;
  readonly isPart: boolean;
  /** The wanted part, if it begins at 0: nothing need be read before. */
  readonly beginning?: ByteRange | undefined;
}

/** The original was replaced after its beginning was read. */
export class OriginalReplaced extends Error {
  override readonly name = 'OriginalReplaced';
  override readonly message = 'The original was replaced while it was opened.';
}

/** Types of other sites' images that are passed on: those that Darkroom decodes (contract §8). */
const PICTURES: ReadonlySet<string> = new Set(
  [...Object.keys(sourceFormats), 'heif', 'heic-sequence', 'heif-sequence'].map(
    (name) => `image/${name}`,
  ),
);

/** Unit in which bytes in memory are passed on. */
const SLICE_BYTES = 64 * 1024;

const NOTHING = new Uint8Array();

/** A beginning, remembered or just read. */
interface FoundBeginning {
  readonly beginning: Beginning;
  /** The body that the beginning was read from, and the bytes that were taken out of it. */
  readonly opened?: Opened & { readonly taken: Uint8Array };
}

/** A request, and where its original is. */
interface Passing extends PassthroughOptions, OriginalLocation {
  readonly request: MediaRequest;
}

interface PassthroughParts extends Backends {
  readonly originals: Originals;
  readonly budget: MemoryBudget;
  readonly blocks: BlockGuard | undefined;
  readonly records: OriginalRecords;
  readonly facts: FactStore;
}

/** Serves attachments and external media unchanged (contract §2, §8): streamed, neither held in memory nor cached. */
export class PassthroughService {
  readonly #parts: PassthroughParts;

  constructor(parts: PassthroughParts) {
    this.#parts = parts;
  }

  /**
   * Opens an original; the caller must `stream` or `discard` it.
   *
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; of other sites also
   *   `UNSUPPORTED_MEDIA_TYPE` and `MEDIA_TOO_LARGE`
   */
  async open(request: MediaRequest, options: PassthroughOptions): Promise<PassthroughMedia> {
    const { records, blocks } = this.#parts;
    const passing = { ...options, ...locateOriginal(this.#parts, request), request };
    const { backend, originKey } = passing;
    if (backend.isExternal) {
      const failure = records.findFailure(originKey, backend.failedForMs.withoutResult, backend);
      if (failure !== undefined) throw failure;
      if (records.isMissing(originKey)) throw new MediaError('UNKNOWN_MEDIA');
    }
    if (blocks?.judgesBytes !== true) return this.#open(passing);
    return backend.isExternal ? this.#openHeld(passing) : this.#openJudged(passing);
  }

  async #open(passing: Passing): Promise<PassthroughMedia> {
    const { records } = this.#parts;
    const { trace, isPart, isWhole, backend, originKey } = passing;
    const known = isPart ? records.findBeginning(originKey) : undefined;
    if (known !== undefined) return this.#describe(passing, { beginning: known });
    return trace.stage('origin', async (details) => {
      // A site may send the whole if it is asked for a part: so a part is asked for only if one is wanted.
      const wantsPart = backend.isExternal ? isPart : !isWhole;
      details.originPart = wantsPart ? 'state' : 'body';
      const range = wantsPart ? rangeOfBeginning(passing.beginning) : undefined;
      const open = () => this.#openBeginning(passing, range);
      const found = await this.#noting(passing, () =>
        backend.isExternal ? trace.stage('fetch', open) : open(),
      );
      const { sizeBytes } = found.beginning;
      if (sizeBytes !== undefined) details.bytes = sizeBytes;
      if (range !== undefined && backend.isExternal) {
        records.noteBeginning(originKey, found.beginning);
      }
      return this.#describe(passing, found);
    });
  }

  /** Opens an original once its bytes are known not to be blocked, unless it is too large to be read before. */
  async #openJudged(passing: Passing): Promise<PassthroughMedia> {
    const { backend, request, trace, signal } = passing;
    const { originals } = this.#parts;
    const { work: original, leave } = originals.join(request);
    try {
      const asked = { isIdentityEnough: true, hasResult: false, trace };
      const { identity } = await unlessAborted(original.identify(asked), signal);
      const { sha256, ...checked } = await originals.checkBytes(original, identity, signal);
      const opened = await this.#open(passing);
      const { etag } = validatorsOf(checked, resultKey(request), PIPELINE_RELEASE);
      const isLarge = (opened.sizeBytes ?? 0) > backend.maxOriginalBytes;
      const isChecked = opened.validators.etag === etag && (sha256 !== undefined || isLarge);
      if (isChecked) return { ...opened, sha256 };
      opened.discard();
      this.#parts.records.forget(request.originKey);
      throw new OriginalReplaced();
    } finally {
      leave();
    }
  }

  /**
   * Opens another site's original whose bytes are checked as they are in memory, since a second response may have other
   * bytes. One that is too large for that is the response that was opened, checked by the digest that the background found.
   */
  async #openHeld(passing: Passing): Promise<PassthroughMedia> {
    const { budget } = this.#parts;
    const { backend, sourceKey, trace, signal } = passing;
    const open = () => openContent(backend, sourceKey, { signal });
    const opened = await this.#noting(passing, () =>
      trace.stage('origin', () => trace.stage('fetch', open)),
    );
    if ((opened.sizeBytes ?? 0) > backend.maxOriginalBytes) return this.#openLarge(passing, opened);
    const held = await withBodyDeadline(
      backend,
      signal,
      (within) => bufferBeginning(backend, opened, budget, within),
      (late) => {
        late.rest?.destroy();
        late.release();
      },
    );
    const { bytes, rest } = held;
    // Small bodies count in no budget: the places of streams bound those that slow clients take.
    const leave =
      rest === undefined &&
      (await backend.streams.enter(signal).catch((error: unknown) => {
        held.release();
        throw error;
      }));
    const release = (): void => {
      if (leave) leave();
      rest?.destroy();
      held.release();
    };
    signal.addEventListener('abort', release, { once: true });
    try {
      const described =
        rest === undefined
          ? await this.#describeHeld(passing, opened, bytes)
          : await this.#openLarge(passing, { ...opened, body: joined(bytes, rest) });
      return {
        ...described,
        discard: release,
        stream: async (first, last) => (await described.stream(first, last)).once('close', release),
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Opens another site's original that is too large to be read before it is sent. */
  async #openLarge(passing: Passing, opened: Opened): Promise<PassthroughMedia> {
    const { blocks, facts, originals } = this.#parts;
    const { backend, signal } = passing;
    const found = await this.#noting(passing, () => this.#takeBeginning(passing, opened));
    try {
      const sha256 = await facts.find(passing, stateOf(backend, opened), 'sha256', signal);
      blocks?.checkDigest(sha256);
      if (sha256 === undefined) originals.hashes.hashSoon(passing);
      return { ...this.#describe(passing, found), sha256 };
    } catch (error) {
      discard(backend, opened);
      throw error;
    }
  }

  async #describeHeld(
    passing: Passing,
    { etag, lastModified, freshForMs }: Opened,
    bytes: Uint8Array,
  ): Promise<PassthroughMedia> {
    const sha256 = sha256Of(bytes);
    this.#parts.blocks?.checkDigest(sha256);
    const contentType = await sniffContentType(bytes.subarray(0, SNIFF_BYTES));
    checkType(contentType);
    const state = { etag, lastModified, freshForMs, sizeBytes: bytes.length };
    const beginning = { prefix: bytes, contentType, hasParts: true, ...state };
    return { ...this.#describe(passing, { beginning }), sha256 };
  }

  #describe(passing: Passing, { beginning, opened }: FoundBeginning): PassthroughMedia {
    const { backend, request, trace } = passing;
    const { prefix, contentType, etag: tag, sizeBytes, lastModified, freshForMs } = beginning;
    const etag =
      tag && validatorsOf({ etag: tag, lastModified }, resultKey(request), PIPELINE_RELEASE).etag;
    const hasRanges = etag !== undefined && sizeBytes !== undefined && beginning.hasParts;
    const letGo = (): void => {
      if (opened !== undefined) discard(backend, opened);
    };
    const ownState = backend.isExternal ? undefined : tag;
    return {
      state: opened === undefined ? ownState : stateOf(backend, opened),
      validators: { etag, lastModified },
      ...{ sizeBytes, contentType, hasRanges },
      maxAgeSeconds: freshForMs && freshForMs / 1000,
      discard: letGo,
      stream: async (first, last) => {
        const lengthBytes = last === undefined ? undefined : last - first + 1;
        if (opened !== undefined && isStream(opened.body) && first === 0) {
          const end = lengthOf(opened);
          if (end === lengthBytes) return passBody(backend, opened.taken, opened.body, lengthBytes);
        }
        letGo();
        if (last !== undefined && last < prefix.length) {
          const part = prefix.subarray(first, last + 1);
          // By slices: a response would take a whole at once, whatever its client's pace.
          const slices = Readable.from(slicesOf(part), { objectMode: false });
          return passBody({ ...backend, observer: undefined }, NOTHING, slices, lengthBytes);
        }
        return trace.stage('origin', () =>
          this.#noting(passing, () => this.#openPart(passing, { first, last }, beginning)),
        );
      },
    };
  }

  /** Opens the whole, or a part that begins at 0, and takes the first bytes. */
  async #openBeginning(passing: Passing, range: ByteRange | undefined): Promise<FoundBeginning> {
    const { backend, sourceKey, signal } = passing;
    const opened = await openContent(backend, sourceKey, { signal, range });
    return this.#takeBeginning(passing, opened, range);
  }

  async #takeBeginning(
    passing: Passing,
    opened: Opened,
    range?: ByteRange,
  ): Promise<FoundBeginning> {
    const { backend, signal } = passing;
    const { part, sizeBytes, etag, lastModified, freshForMs } = opened;
    try {
      if ((sizeBytes ?? 0) > backend.maxPassedBytes) {
        const cause = new Error(`${sizeBytes} bytes, at most ${backend.maxPassedBytes}`);
        throw new MediaError('MEDIA_TOO_LARGE', { cause });
      }
      const taken = await takePrefix(backend, opened, SNIFF_BYTES, signal);
      const prefix = new Uint8Array(taken.subarray(0, SNIFF_BYTES));
      const contentType = await sniffContentType(prefix);
      if (backend.isExternal) checkType(contentType);
      // Without a tag, nothing tells whether parts belong together.
      if (part !== undefined && etag === undefined) {
        discard(backend, opened);
        return await this.#openBeginning(passing, undefined);
      }
      const hasParts = part !== undefined || range === undefined || !backend.isExternal;
      const state = { sizeBytes, etag, lastModified, freshForMs };
      return {
        beginning: { prefix, contentType, hasParts, ...state },
        opened: { ...opened, taken },
      };
    } catch (error) {
      if (isStream(opened.body)) opened.body.destroy();
      throw error;
    }
  }

  async #openPart(
    { backend, originKey, sourceKey, signal }: Passing,
    range: ByteRange,
    { etag: tag, sizeBytes }: Beginning,
  ): Promise<Readable> {
    const opened = await openContent(backend, sourceKey, { signal, range, ifRange: tag });
    const { body, part, etag } = opened;
    const isSame = etag === tag && opened.sizeBytes === sizeBytes;
    if (part === undefined || !isSame || !isStream(body)) {
      // The original was replaced, or the site does not support ranges after all.
      if (isStream(body)) body.destroy();
      this.#parts.records.forgetBeginning(originKey);
      throw new OriginalReplaced();
    }
    // A failure before the first byte can still be reported by a status.
    const prefix = await takePrefix(backend, opened, 1, signal);
    return passBody(backend, prefix, body, lengthOf(opened));
  }

  async #noting<Result>(
    { backend, originKey }: OriginalLocation,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      // Failures of the storage are not remembered: an attachment may have been uploaded meanwhile.
      if (backend.isExternal) this.#parts.records.noteError(originKey, error);
      throw error;
    }
  }
}

/** Joins the beginning that was taken out of a body with its rest. */
function joined(taken: Uint8Array, rest: Readable): Readable {
  const join = async function* () {
    yield* slicesOf(taken);
    yield* rest as AsyncIterable<Uint8Array>;
  };
  return Readable.from(join(), { objectMode: false });
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let first = 0; first < bytes.length; first += SLICE_BYTES) {
    yield bytes.subarray(first, first + SLICE_BYTES);
  }
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` for types that are not passed on from other sites */
function checkType(contentType: string): void {
  if (/^(?:video|audio)\//.test(contentType) || PICTURES.has(contentType)) return;
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', {
    cause: new Error(`The type is ${contentType}.`),
  });
}

/** Returns the range that tells the type: the wanted beginning, or the sniffed bytes if they are more. */
function rangeOfBeginning(wanted: ByteRange | undefined): ByteRange {
  const least = SNIFF_BYTES - 1;
  if (wanted === undefined) return { first: 0, last: least };
  return { first: 0, last: wanted.last === undefined ? undefined : Math.max(wanted.last, least) };
}
