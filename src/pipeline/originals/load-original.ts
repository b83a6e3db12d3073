import { createHash } from 'node:crypto';
import { MediaError } from '../../contract/errors.ts';
import { isDecodable } from '../../formats/containers.ts';
import { sniffAv } from '../../formats/video/sniff-av.ts';
import type { CachedOriginal, Opened, OpenOptions, OriginalIdentity } from '../ports.ts';
import type { Services } from '../services.ts';
import type { OriginalLocation } from './backend.ts';
import { SNIFF_BYTES } from './content-sniff.ts';
import type { DetailStore } from './detail-store.ts';
import { isDigest, sha256Of, stateOf } from './digests.ts';
import { readAtLeast } from './forward-body.ts';
import {
  type BufferedBytes,
  bufferBody,
  discard,
  isStream,
  lengthOf,
  withBodyDeadline,
} from './open-body.ts';
import type { OriginalReader } from './original-reader.ts';
import type { OriginalDetails } from './records.ts';
import { BLOCK_BYTES, FIRST_BLOCK } from './sequential-body.ts';

export type BufferedImage = CachedOriginal & BufferedBytes;

/** A video that is read by ranges; its reader accounts for its memory. */
export interface LoadedVideo extends OriginalIdentity {
  readonly reader: OriginalReader;
  readonly free: () => void;
}

export type LoadedOriginal = BufferedImage | LoadedVideo;

/** Members of `OriginalFlight`, which imports this file. */
interface LoadingFlight extends OriginalLocation {
  readonly signal: AbortSignal;
  readonly open: (range?: OpenOptions['range']) => Promise<Opened>;
  readonly noteFound: (opened: Opened) => OriginalIdentity;
  readonly noteError: (error: unknown) => void;
  readonly rememberDetails: (etag: string, details: Partial<OriginalDetails>) => void;
  readonly commit: (write: () => unknown) => unknown;
  readonly commitIfRemembered: (write: () => unknown) => unknown;
  readonly createReader: (etag: string, opened: Opened, minLimitBytes?: number) => OriginalReader;
}

/** First bytes of a body; buffered completely unless it is read by ranges. */
interface ReadBody {
  readonly prefix: Uint8Array;
  readonly buffered?: BufferedBytes;
}

/** Containers of videos that have posters (contract §12). */
const VIDEOS: ReadonlySet<string | undefined> = new Set(['mp4', 'mov', 'webm', 'matroska']);

/**
 * Loads an original from an opened body: a video by ranges, everything else into memory.
 *
 * @param range requested range of the body
 * @throws MediaError `MEDIA_TOO_LARGE`, `UNSUPPORTED_MEDIA_TYPE`, `OVERLOADED`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`
 */
export async function loadBody(
  flight: LoadingFlight,
  services: Services,
  opened: Opened,
  range?: OpenOptions['range'],
): Promise<LoadedOriginal> {
  const { backend, signal } = flight;
  const isPart = lengthOf(opened) !== opened.sizeBytes;
  const { originalsBudget: budget, caches, blocks, details } = services;
  try {
    const read = async (within: AbortSignal): Promise<ReadBody> => {
      const prefix = await readAtLeast(backend, opened, SNIFF_BYTES, within);
      if (isVideo(prefix) || isPart) return { prefix };
      // The rest of another site's file is not read unless it is an image.
      const isNotImage = prefix.length >= SNIFF_BYTES && !isDecodable(prefix);
      if (backend.isExternal && isNotImage) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
      return { prefix, buffered: await bufferBody(backend, opened, budget, within, prefix) };
    };
    // Bytes in memory need no deadline.
    const { prefix, buffered } = await (isStream(opened.body)
      ? withBodyDeadline(backend, signal, read, (late) => late.buffered?.free())
      : read(signal));
    if (buffered === undefined && isVideo(prefix)) {
      return await (backend.isExternal
        ? openSiteVideo(flight, services, { opened, prefix, range })
        : openVideo(flight, opened, prefix));
    }
    if (buffered === undefined) {
      discard(backend, opened);
      return await loadBody(flight, services, await flight.open());
    }
    const { bytes } = buffered;
    const etag = backend.source.identity === 'digest' ? digestOf(bytes) : opened.etag;
    const identity = flight.noteFound({ ...opened, etag });
    const isCached = flight.commitIfRemembered(() =>
      caches.originals.set(flight.originKey, { ...identity, bytes }).has(flight.originKey),
    );
    // Digests are needed only if originals may be blocked by them.
    if (blocks !== undefined) noteDigest(details, flight, identity.etag, sha256Of(bytes));
    return { ...buffered, ...identity, isExclusive: buffered.isExclusive && !isCached };
  } catch (error) {
    if (isStream(opened.body)) opened.body.destroy();
    flight.noteError(error);
    throw error;
  }
}

/**
 * Opens the current state by ranges; the first block identifies it.
 *
 * @param minLimitBytes minimum of the limit of reads
 * @throws MediaError of the source, `MEDIA_TOO_LARGE`
 */
export async function openByRanges(flight: LoadingFlight, minLimitBytes = 0) {
  const opened = await flight.open(FIRST_BLOCK);
  const identity = flight.noteFound(opened);
  const reader = flight.createReader(identity.etag, opened, minLimitBytes);
  await reader.storeFirstBlock(opened);
  return { identity, reader };
}

export function videoOf(
  flight: LoadingFlight,
  identity: OriginalIdentity,
  reader: OriginalReader,
): LoadedVideo {
  flight.rememberDetails(identity.etag, { videoBytes: reader.sizeBytes });
  return { ...identity, reader, free: () => reader.free() };
}

async function openVideo(
  flight: LoadingFlight,
  opened: Opened,
  prefix: Uint8Array,
): Promise<LoadedVideo> {
  const identity = flight.noteFound(opened);
  const reader = flight.createReader(identity.etag, opened);
  if (opened.part === undefined) discard(flight.backend, opened);
  else await reader.storeFirstBlock(opened, prefix);
  return videoOf(flight, identity, reader);
}

interface SiteBody {
  readonly opened: Opened;
  readonly prefix?: Uint8Array;
  readonly range: OpenOptions['range'] | undefined;
}

/** Opens another site's video, by ranges if a validator ties them to one state, else from its start. */
async function openSiteVideo(
  flight: LoadingFlight,
  { blocks, records }: Services,
  body: SiteBody,
): Promise<LoadedVideo> {
  const { backend, originKey, signal } = flight;
  // Up to this size, videos are read completely to check their digests before a poster is rendered.
  const checkedBytes = blocks?.hasDigestBlocks === true ? backend.maxOriginalBytes : 0;
  const isTied = ({ rangeValidator, sizeBytes = 0 }: Opened): boolean =>
    rangeValidator !== undefined && sizeBytes > checkedBytes;
  const reopen = async (range: OpenOptions['range']): Promise<SiteBody> => {
    discard(backend, current.opened);
    return { opened: await flight.open(range), range };
  };
  let current = body;
  if (current.range === undefined && isTied(current.opened)) current = await reopen(FIRST_BLOCK);
  if (current.opened.part !== undefined && !isTied(current.opened)) {
    current = await reopen(undefined);
  }
  const { opened, prefix } = current;
  const state = stateOf(backend, opened);
  const reader = flight.createReader(state, opened, checkedBytes);
  await (opened.part === undefined
    ? reader.attachBody(opened, prefix)
    : reader.storeFirstBlock(opened, prefix));
  const beginning = await reader.read(0, BLOCK_BYTES, signal);
  // The reopened body may have other bytes.
  if (!isVideo(beginning)) {
    reader.free();
    throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
  }
  const { validators } = opened;
  const hasValidator = (validators?.etag ?? validators?.lastModified) !== undefined;
  // Without a validator, two states of the same length would look equal.
  const etag = hasValidator ? state : `${state} ${sha256Of(beginning)}`;
  // Background hashes are stored for the declared state.
  const sha256 = records.findSha256(originKey, etag) ?? records.findSha256(originKey, state);
  const identity = flight.noteFound({ ...opened, etag });
  const video = videoOf(flight, identity, reader);
  if (sha256 !== undefined) flight.rememberDetails(etag, { sha256 });
  return video;
}

/** Remembers the digest of a state, and stores it unless the identity contains it. */
export function noteDigest(
  details: DetailStore,
  flight: Pick<LoadingFlight, 'originKey' | 'backend' | 'rememberDetails' | 'commit'>,
  etag: string,
  sha256: string,
): void {
  if (isDigest(flight.backend, etag)) flight.rememberDetails(etag, { sha256 });
  else details.put(flight, etag, 'sha256', sha256);
}

function isVideo(prefix: Uint8Array): boolean {
  return VIDEOS.has(sniffAv(prefix));
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url');
}
