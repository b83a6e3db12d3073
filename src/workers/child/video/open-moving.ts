import {
  EncodedPacketSink,
  FLAC,
  Input,
  type InputAudioTrack,
  type InputTrack,
  type InputVideoTrack,
  Logging,
  LogLevel,
  MATROSKA,
  MP4,
  OGG,
  QTFF,
  WAVE,
  WEBM,
} from 'mediabunny';
import { MediaError } from '../../../contract/errors.ts';
import { sniffMoving } from '../../../formats/video/sniff-moving.ts';
import type { MovingContainer } from '../../../formats/video/video-facts.ts';
import type { BlockCache } from './block-cache.ts';
import { demultiplex, GuardedSource } from './guarded-source.ts';

/** Bytes that suffice to recognize a container. */
const PREFIX_BYTES = 128;

/** Limit of the index: movie box; EBML head, tracks and cues (contract §12). */
const MAX_INDEX_BYTES = 16 * 2 ** 20;

/** Codecs of cover pictures, which are no video (contract §12). */
const COVER_CODECS = ['jpeg', 'png ', 'mjpa', 'mjpb', 'gif ', 'tiff', 'bmp '];

/** The demultiplexer writes warnings about damaged files to the console. */
Logging.level = LogLevel.Silent;

/** A container whose index has been read. */
export interface OpenedMoving {
  readonly container: MovingContainer;
  readonly cache: BlockCache;
  readonly source: GuardedSource;
  readonly tracks: readonly InputTrack[];
  /** The track that a player shows. */
  readonly video: InputVideoTrack | undefined;
  readonly sounds: readonly InputAudioTrack[];
}

/** Returns the container of a file; `undefined` if it holds neither video nor sound. */
export async function sniffContainer(cache: BlockCache): Promise<MovingContainer | undefined> {
  return sniffMoving(await cache.read(0, Math.min(PREFIX_BYTES, cache.sizeBytes)));
}

/**
 * Reads the index of a container.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if it is missing or damaged, `MEDIA_TOO_LARGE` beyond a limit; errors of the
 *   source
 */
export async function openMoving(
  cache: BlockCache,
  container: MovingContainer,
): Promise<OpenedMoving> {
  const source = new GuardedSource(cache, container);
  const formats = [MP4, QTFF, WEBM, MATROSKA, OGG, WAVE, FLAC];
  const input = new Input({ source, formats });
  cache.limit(MAX_INDEX_BYTES);
  const opened = await demultiplex(source, async () => {
    const tracks = await input.getTracks();
    const videos: InputVideoTrack[] = [];
    const enabled: InputVideoTrack[] = [];
    for (const track of tracks.filter((each) => each.isVideoTrack())) {
      if (COVER_CODECS.includes(String(await track.getInternalCodecId()).toLowerCase())) continue;
      videos.push(track);
      if ((await track.getDisposition()).default) enabled.push(track);
    }
    return { tracks, video: enabled[0] ?? videos[0] };
  });
  cache.limit();
  const sounds = opened.tracks.filter((track) => track.isAudioTrack());
  return { container, cache, source, ...opened, sounds };
}

/** Returns the packets of a track. */
export function packetsOf(track: InputTrack): EncodedPacketSink {
  return new EncodedPacketSink(track);
}

/** Whether an error is about the file, and not about the way to it. */
export function isFault(
  error: unknown,
): error is MediaError & { readonly code: 'UNPROCESSABLE_MEDIA' | 'MEDIA_TOO_LARGE' } {
  return (
    error instanceof MediaError &&
    (error.code === 'UNPROCESSABLE_MEDIA' || error.code === 'MEDIA_TOO_LARGE')
  );
}
