import type { Orientation, Size } from '../image-header.ts';

/** Codecs of videos that have posters (contract §12). */
export const videoCodecs = ['h264', 'hevc', 'vp8', 'vp9', 'av1'] as const;
export type VideoCodec = (typeof videoCodecs)[number];

/** Containers whose metadata is read (contract §12 and §13): videos, then audio. */
export const avContainers = [
  'mp4',
  'mov',
  'webm',
  'matroska',
  'mp3',
  'ogg',
  'wav',
  'flac',
] as const;
export type AvContainer = (typeof avContainers)[number];

export interface VideoTrack {
  /** `undefined` for a codec that we do not decode. */
  readonly codec: VideoCodec | undefined;
  /** Size of a frame as the decoder must return it, cropped by its parameter sets. */
  readonly codedSize: Size;
  /** Size with square pixels, before orientation. */
  readonly size: Size;
  /** Orientation of the track's matrix, as an EXIF value. */
  readonly orientation: Orientation;
}

/** Reason why a file has no poster. */
export interface PosterError {
  readonly code: 'UNSUPPORTED_MEDIA_TYPE' | 'UNPROCESSABLE_MEDIA' | 'MEDIA_TOO_LARGE';
  readonly reason: string;
}

/** Metadata of a video or audio file, read without decoding. */
export interface AvMetadata {
  readonly kind: 'video' | 'audio';
  readonly container: AvContainer;
  /** RFC 6381 codec of the primary video track, else of the first audio track; `mp3` or `pcm` for these. */
  readonly codec: string | undefined;
  /** Seconds, rounded to 0.001; `undefined` if not found within the limits. */
  readonly durationS: number | undefined;
  /** `undefined` for a video without an index of tracks. */
  readonly hasAudio: boolean | undefined;
  /** `undefined` for audio, and for a video whose index does not declare it. */
  readonly video: VideoTrack | undefined;
  /** Set for every file without a poster, such as audio. */
  readonly posterError: PosterError | undefined;
}

export interface ByteSource {
  readonly sizeBytes: number;
  read(start: number, end: number): Promise<Uint8Array>;
}

export interface DecodeRequest {
  readonly codec: VideoCodec;
  /** One access unit: Annex B with parameter sets (ITU-T H.264, H.265), or IVF (VP8, VP9, AV1). */
  readonly stream: Uint8Array;
  readonly size: Size;
}

/** Maximum size of a decoded frame (contract §12). */
export const MAX_FRAME_PIXELS = 35_651_584;
export const MAX_FRAME_EDGE_PX = 16_384;

/** Maximum bytes of the heads of a Y4M file and its frame together. */
export const MAX_Y4M_HEAD_BYTES = 512;

/** Returns the maximum bytes of a Y4M file of one frame: full-size planes, two bytes a sample. */
export function maxFrameBytes({ widthPx, heightPx }: Size): number {
  return MAX_Y4M_HEAD_BYTES + widthPx * heightPx * 3 * 2;
}

export interface FrameDecoder {
  /** Decodes one frame into a Y4M file. @throws MediaError `UNPROCESSABLE_MEDIA` if the frame is damaged */
  decode(request: DecodeRequest): Promise<Uint8Array>;
}
