import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { PIPELINE_RELEASE } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resultKey, type Validators, validatorsOf } from '../../contract/result-key.ts';
import { unlessAborted } from '../abort.ts';
import type { Opened } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import { sha256Of, stateOf } from './digests.ts';
import { forwardBody, forwardBytes, joinBody } from './forward-body.ts';
import {
  checkType,
  type FoundBeginning,
  OriginalReplaced,
  openBeginning,
  openRange,
  type PassthroughRequest,
  type RequestedBytes,
  rangeOfBeginning,
  readBeginning,
  rememberingFailures,
} from './open-beginning.ts';
import {
  bufferBeginning,
  discard,
  isStream,
  lengthOf,
  openContent,
  withBodyDeadline,
} from './open-body.ts';
import { locateOriginal, type OriginalServices } from './originals.ts';

export interface PassthroughMedia {
  readonly validators: Validators;
  readonly sizeBytes: number | undefined;
  readonly contentType: string;
  /** State to which the digest belongs. */
  readonly state: string | undefined;
  /** SHA-256 (hexadecimal), if blocks depend on it. */
  readonly sha256?: string | undefined;
  readonly hasRanges: boolean;
  /** Freshness that another site declares, in seconds. */
  readonly maxAgeSeconds: number | undefined;
  /**
   * Opens the bytes `first` to `last` inclusive, or to the end.
   *
   * @throws MediaError as `Source.open`; `OriginalReplaced` if the original must be opened again
   */
  readonly stream: (first: number, last: number | undefined) => Promise<Readable>;
  /** Discards the body without reading it. */
  readonly discard: () => void;
}

/**
 * Opens an attachment or external media to be sent unmodified (contract §2, §8). The caller must `stream` or `discard`
 * it.
 *
 * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; of other sites also
 *   `UNSUPPORTED_MEDIA_TYPE` and `MEDIA_TOO_LARGE`; `OriginalReplaced`
 */
export async function openPassthrough(
  services: OriginalServices,
  request: MediaRequest,
  requested: RequestedBytes,
  { signal, trace }: { readonly signal: AbortSignal; readonly trace: RequestTrace },
): Promise<PassthroughMedia> {
  const { records, blocks } = services;
  const location = locateOriginal(services, request);
  const passthrough = { ...requested, ...location, request, signal, trace };
  const { backend, originKey } = location;
  if (backend.isExternal) {
    const failure = records.findFailure(originKey, backend.failedForMs.withoutResult, backend);
    if (failure !== undefined) throw failure;
    if (records.isMissing(originKey)) throw new MediaError('UNKNOWN_MEDIA');
  }
  if (blocks?.hasDigestBlocks !== true) return openUnchecked(services, passthrough);
  return backend.isExternal
    ? openBuffered(services, passthrough)
    : openChecked(services, passthrough);
}

async function openUnchecked(
  services: OriginalServices,
  passthrough: PassthroughRequest,
): Promise<PassthroughMedia> {
  const { records } = services;
  const { trace, isRange, isComplete, backend, originKey } = passthrough;
  const known = isRange ? records.findBeginning(originKey) : undefined;
  if (known !== undefined) return describe(services, passthrough, { beginning: known });
  return trace.stage('origin', async (details) => {
    // Another site may return the complete body for a range.
    const wantsRange = backend.isExternal ? isRange : !isComplete;
    details.originPart = wantsRange ? 'state' : 'body';
    const range = wantsRange ? rangeOfBeginning(passthrough.beginning) : undefined;
    const open = () => openBeginning(passthrough, range);
    const found = await rememberingFailures(services, passthrough, () =>
      backend.isExternal ? trace.stage('fetch', open) : open(),
    );
    const { sizeBytes } = found.beginning;
    if (sizeBytes !== undefined) details.bytes = sizeBytes;
    if (range !== undefined && backend.isExternal) {
      records.noteBeginning(originKey, found.beginning);
    }
    return describe(services, passthrough, found);
  });
}

/** Opens an original if its bytes are not blocked. Those of large originals cannot be checked before they are sent. */
async function openChecked(
  services: OriginalServices,
  passthrough: PassthroughRequest,
): Promise<PassthroughMedia> {
  const { backend, request, trace, signal } = passthrough;
  const { originals, records, refusals } = services;
  const { work: original, leave } = originals.join(request);
  try {
    const { identity } = await unlessAborted(original.identify(trace, 'identity'), signal);
    const { sha256, ...checked } = await originals.checkBytes(original, identity, signal);
    const opened = await openUnchecked(services, passthrough);
    const { etag } = validatorsOf(checked, resultKey(request), PIPELINE_RELEASE);
    const isLarge = (opened.sizeBytes ?? 0) > backend.maxOriginalBytes;
    const isChecked = opened.validators.etag === etag && (sha256 !== undefined || isLarge);
    if (isChecked) return { ...opened, sha256 };
    opened.discard();
    records.forget(request.originKey);
    refusals.forget(request.originKey);
    throw new OriginalReplaced();
  } finally {
    leave();
  }
}

/**
 * Buffers and checks another site's original, since a second response may have other bytes. A larger one is sent as it
 * arrives, and checked by a digest from an earlier background hash.
 */
async function openBuffered(
  services: OriginalServices,
  passthrough: PassthroughRequest,
): Promise<PassthroughMedia> {
  const { backend, sourceKey, trace, signal } = passthrough;
  const open = () => openContent(backend, sourceKey, { signal });
  const opened = await rememberingFailures(services, passthrough, () =>
    trace.stage('origin', () => trace.stage('fetch', open)),
  );
  if ((opened.sizeBytes ?? 0) > backend.maxOriginalBytes) {
    return openLarge(services, passthrough, opened);
  }
  const buffered = await withBodyDeadline(
    backend,
    signal,
    (within) => bufferBeginning(backend, opened, services.originalsBudget, within),
    (late) => {
      late.rest?.destroy();
      late.free();
    },
  );
  const { bytes, rest } = buffered;
  // The budget does not limit small bodies; the stream slots limit those that slow clients keep in memory.
  const leave =
    rest === undefined &&
    (await backend.streams.acquire(signal).catch((error: unknown) => {
      buffered.free();
      throw error;
    }));
  const free = (): void => {
    if (leave) leave();
    rest?.destroy();
    buffered.free();
  };
  signal.addEventListener('abort', free, { once: true });
  try {
    const described =
      rest === undefined
        ? await describeBuffered(services, passthrough, opened, bytes)
        : await openLarge(services, passthrough, { ...opened, body: joinBody(bytes, rest) });
    return {
      ...described,
      discard: free,
      stream: async (first, last) => (await described.stream(first, last)).once('close', free),
    };
  } catch (error) {
    free();
    throw error;
  }
}

/** Opens another site's original that is too large to be buffered. */
async function openLarge(
  services: OriginalServices,
  passthrough: PassthroughRequest,
  opened: Opened,
): Promise<PassthroughMedia> {
  const { blocks, details, originals } = services;
  const { backend, signal } = passthrough;
  const found = await rememberingFailures(services, passthrough, () =>
    readBeginning(passthrough, opened),
  );
  try {
    const sha256 = await details.find(passthrough, stateOf(backend, opened), 'sha256', signal);
    blocks?.checkDigest(sha256);
    if (sha256 === undefined) originals.hashes.hashSoon(passthrough);
    return { ...describe(services, passthrough, found), sha256 };
  } catch (error) {
    discard(backend, opened);
    throw error;
  }
}

async function describeBuffered(
  services: OriginalServices,
  passthrough: PassthroughRequest,
  { etag, lastModified, freshForMs }: Opened,
  bytes: Uint8Array,
): Promise<PassthroughMedia> {
  const sha256 = sha256Of(bytes);
  services.blocks?.checkDigest(sha256);
  const contentType = await sniffContentType(bytes.subarray(0, SNIFF_BYTES));
  checkType(contentType);
  const state = { etag, lastModified, freshForMs, sizeBytes: bytes.length };
  const beginning = { prefix: bytes, contentType, hasRanges: true, ...state };
  return { ...describe(services, passthrough, { beginning }), sha256 };
}

function describe(
  services: OriginalServices,
  passthrough: PassthroughRequest,
  { beginning, opened }: FoundBeginning,
): PassthroughMedia {
  const { backend, request, trace } = passthrough;
  const { prefix, contentType, etag: tag, sizeBytes, lastModified, freshForMs } = beginning;
  const etag =
    tag && validatorsOf({ etag: tag, lastModified }, resultKey(request), PIPELINE_RELEASE).etag;
  const discardOpened = (): void => {
    if (opened !== undefined) discard(backend, opened);
  };
  const storageState = backend.isExternal ? undefined : tag;
  return {
    state: opened === undefined ? storageState : stateOf(backend, opened),
    validators: { etag, lastModified },
    sizeBytes,
    contentType,
    hasRanges: etag !== undefined && sizeBytes !== undefined && beginning.hasRanges,
    maxAgeSeconds: freshForMs && freshForMs / 1000,
    discard: discardOpened,
    stream: async (first, last) => {
      const lengthBytes = last === undefined ? undefined : last - first + 1;
      if (opened !== undefined && isStream(opened.body) && first === 0) {
        const isComplete = lengthOf(opened) === lengthBytes;
        if (isComplete) return forwardBody(backend, opened.prefixBytes, opened.body, lengthBytes);
      }
      discardOpened();
      if (last !== undefined && last < prefix.length) {
        return forwardBytes(backend, prefix.subarray(first, last + 1));
      }
      const open = () => openRange(services, passthrough, { first, last }, beginning);
      return trace.stage('origin', () => rememberingFailures(services, passthrough, open));
    },
  };
}
