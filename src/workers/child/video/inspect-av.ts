import type { InputTrack, InputVideoTrack } from 'mediabunny';
import { corruptMedia } from '../../../formats/byte-reader.ts';
import type { Orientation, Size } from '../../../formats/image-header.ts';
import {
  type AvContainer,
  type AvMetadata,
  type ByteSource,
  MAX_FRAME_EDGE_PX,
  MAX_FRAME_PIXELS,
  type PosterError,
  type VideoCodec,
  type VideoTrack,
} from '../../../formats/video/av-metadata.ts';
import { BlockCache } from './block-cache.ts';
import { demultiplex, GuardedSource } from './guarded-source.ts';
import { readMp3DurationS } from './mp3-duration.ts';
import { isFileError, type OpenedAv, openAv, sniffContainer } from './open-av.ts';

/** Limits of the search for a duration if no header contains it. */
const MAX_DURATION_BYTES = 8 * 2 ** 20;
const MAX_DURATION_READS = 8;
/** A file with more fragments has a table of them at its end, or far too many. */
const MAX_FRAGMENT_READS = 2;

/** Containers that never have video, even if their index is damaged. */
const AUDIO_CONTAINERS: readonly AvContainer[] = ['mp3', 'ogg', 'wav', 'flac'];

const CODEC_NAME = /^[\w.-]{1,64}$/;

const CODECS: Readonly<Partial<Record<string, VideoCodec>>> = {
  avc: 'h264',
  hevc: 'hevc',
  vp8: 'vp8',
  vp9: 'vp9',
  av1: 'av1',
};

/** Orientations by the side to which a matrix maps the right one: right, bottom, left, top. Unflipped ones first. */
const ORIENTATIONS: readonly (readonly Orientation[])[] = [
  [1, 6, 3, 8],
  [4, 5, 2, 7],
];

/** Reads the metadata of a video or audio file, even a damaged one. @throws MediaError if the file is neither */
export async function inspectAv(source: ByteSource): Promise<AvMetadata> {
  const cache = new BlockCache(source);
  const container = await sniffContainer(cache);
  if (container === undefined) throw corruptMedia('neither video nor audio');
  const kind = kindOf(container);
  const common = {
    container,
    kind,
    codec: undefined,
    durationS: undefined,
    video: undefined,
  } as const;
  if (container === 'mp3') {
    const posterError = unsupported('audio only');
    const durationS = round(await readMp3DurationS(cache, MAX_DURATION_BYTES));
    return { ...common, codec: 'mp3', durationS, hasAudio: true, posterError };
  }
  const guarded = new GuardedSource(cache, container);
  try {
    return await readMetadata(await openAv(cache, guarded));
  } catch (error) {
    if (!isFileError(error)) throw error;
    const posterError =
      kind === 'audio'
        ? unsupported('audio only')
        : { code: error.code, reason: String(error.cause ?? error) };
    const isEncrypted = guarded.iso?.tracks.some(({ entry }) => entry === 'encv');
    const hasAudio = kind === 'audio' || guarded.iso?.tracks.some(({ isVideo }) => !isVideo);
    return {
      ...common,
      hasAudio,
      posterError: isEncrypted ? unsupported('an encrypted track') : posterError,
    };
  }
}

function kindOf(container: AvContainer): AvMetadata['kind'] {
  return AUDIO_CONTAINERS.includes(container) ? 'audio' : 'video';
}

async function readMetadata(opened: OpenedAv): Promise<AvMetadata> {
  const { tracks, video, audioTracks } = opened;
  const { container } = opened.source;
  const hasTracks = tracks.length > 0;
  const track = video ?? audioTracks[0];
  const videoTrack = video && (await readVideoTrack(opened, video));
  const isSized = videoTrack && [videoTrack.codedSize, videoTrack.size].every(isSize);
  return {
    container,
    kind: kindOf(container) === 'video' && (video || !hasTracks) ? 'video' : 'audio',
    codec: track && (await readCodec(opened, track)),
    durationS: round(await readDurationS(opened)),
    hasAudio: hasTracks ? audioTracks.length > 0 : undefined,
    video: isSized ? videoTrack : undefined,
    posterError: await findPosterError(opened, videoTrack),
  };
}

export function readVideoTrack({ source }: OpenedAv, track: InputVideoTrack): Promise<VideoTrack> {
  return demultiplex(source, async () => ({
    codec: CODECS[(await track.getCodec()) ?? ''],
    codedSize: {
      widthPx: await track.getCodedWidth(),
      heightPx: await track.getCodedHeight(),
    },
    size: {
      widthPx: await track.getSquarePixelWidth(),
      heightPx: await track.getSquarePixelHeight(),
    },
    orientation: orientationOf(await track.getTransformationMatrix()),
  }));
}

function orientationOf(matrix: readonly number[]): Orientation {
  const [a = 1, b = 0, , c = 0, d = 1] = matrix;
  const quarters = Math.round(Math.atan2(b, a) / (Math.PI / 2));
  const isFlipped = a * d - b * c < 0;
  return ORIENTATIONS[isFlipped ? 1 : 0]?.[(quarters + 4) % 4] ?? 1;
}

/** Returns why a file has no poster, according to its index. */
export async function findPosterError(
  { source, tracks, video }: OpenedAv,
  videoTrack: VideoTrack | undefined,
): Promise<PosterError | undefined> {
  if (video === undefined || videoTrack === undefined) {
    const { iso, ebml } = source;
    const isEmpty =
      kindOf(source.container) === 'video' &&
      tracks.length === 0 &&
      !iso?.tracks.length &&
      !ebml?.hasUnreadable;
    return isEmpty ? { code: 'UNPROCESSABLE_MEDIA', reason: 'no tracks' } : unsupported('no video');
  }
  const entry = String(await video.getInternalCodecId());
  if (entry === 'encv') return unsupported('an encrypted track');
  if (videoTrack.codec === undefined) return unsupported(`codec ${entry}`);
  const index = source.iso?.tracks.find(({ id }) => id === video.id);
  if (index?.lacksKeyFrames) return { code: 'UNPROCESSABLE_MEDIA', reason: 'no key frame' };
  return findSizeError(videoTrack.codedSize) ?? findSizeError(videoTrack.size);
}

function findSizeError({ widthPx, heightPx }: Size): PosterError | undefined {
  const reason = `${widthPx}×${heightPx} px`;
  if (!isSize({ widthPx, heightPx })) return { code: 'UNPROCESSABLE_MEDIA', reason };
  const isTooLarge =
    widthPx * heightPx > MAX_FRAME_PIXELS || Math.max(widthPx, heightPx) > MAX_FRAME_EDGE_PX;
  return isTooLarge ? { code: 'MEDIA_TOO_LARGE', reason } : undefined;
}

function isSize({ widthPx, heightPx }: Size): boolean {
  return [widthPx, heightPx].every((edge) => edge > 0 && edge < 2 ** 32 && Number.isInteger(edge));
}

function unsupported(reason: string): PosterError {
  return { code: 'UNSUPPORTED_MEDIA_TYPE', reason };
}

/** Returns the RFC 6381 codec, or the container's name of an unknown codec. */
async function readCodec(opened: OpenedAv, track: InputTrack): Promise<string | undefined> {
  const codec = await track.getCodec();
  if (codec === 'mp3') return 'mp3';
  if (codec?.startsWith('pcm-') || codec === 'ulaw' || codec === 'alaw') return 'pcm';
  const entry = await track.getInternalCodecId();
  // Some codecs have no configuration record, only parameters in their first packet.
  const declared = (await within(opened, () => track.getCodecParameterString())) ?? String(entry);
  // The demultiplexer has one name for both HEVC sample entries.
  const name = entry === 'hvc1' ? declared.replace('hev1', entry) : declared;
  return CODEC_NAME.test(name) ? name : undefined;
}

/** Returns the duration of the longest track, from its first presented sample to the end of its last. */
async function readDurationS(opened: OpenedAv): Promise<number | undefined> {
  const { source, tracks } = opened;
  if (source.iso !== undefined) {
    const durations = source.iso.tracks.flatMap(({ durationS }) => durationS ?? []);
    const declared = durations.length > 0 ? Math.max(...durations) : source.iso.fragmentsDurationS;
    if (declared !== undefined) return declared;
  } else if (source.container !== 'ogg') {
    const declared = await within(opened, async () => await tracks[0]?.getDurationFromMetadata());
    if (declared) return declared;
  }
  const { cache } = opened;
  return await within(opened, async () => {
    if (cache.sizeBytes <= MAX_DURATION_BYTES) await cache.read(0, cache.sizeBytes);
    let longestS = 0;
    // Sequential, so that no other read is in progress after a failure.
    for (const track of tracks) {
      const startS = Math.max(0, await track.getFirstTimestamp());
      longestS = Math.max(longestS, (await track.computeDuration()) - startS);
    }
    return longestS;
  });
}

/** Runs a step within limits; returns `undefined` beyond them, or if the file is damaged. */
async function within<Result>(
  { cache, source }: OpenedAv,
  step: () => Promise<Result>,
): Promise<Result | undefined> {
  cache.limit(MAX_DURATION_BYTES, source.iso ? MAX_FRAGMENT_READS : MAX_DURATION_READS);
  try {
    return await demultiplex(source, step);
  } catch (error) {
    if (isFileError(error)) return undefined;
    throw error;
  } finally {
    cache.limit();
  }
}

function round(seconds: number | undefined): number | undefined {
  const isKnown = seconds !== undefined && Number.isFinite(seconds) && seconds > 0;
  return isKnown ? Math.round(seconds * 1000) / 1000 : undefined;
}
