import type { Orientation, Size } from '../image-facts.ts';

/** Codecs of which a key frame becomes a poster (contract §12). */
export const videoCodecs = ['h264', 'hevc', 'vp8', 'vp9', 'av1'] as const;
export type VideoCodec = (typeof videoCodecs)[number];

/** Containers whose facts are read (contract §12 and §13): first those of videos, then those of sound alone. */
export const movingContainers = [
  'mp4',
  'mov',
  'webm',
  'matroska',
  'mp3',
  'ogg',
  'wav',
  'flac',
] as const;
export type MovingContainer = (typeof movingContainers)[number];

/** Facts of the primary video track. */
export interface VideoTrackFacts {
  /** `undefined` if we do not decode it. */
  readonly codec: VideoCodec | undefined;
  /** Size of a decoded frame, cropped by its parameter sets; the decoder must return this size. */
  readonly codedSize: Size;
  /** The same with square pixels, before orientation. */
  readonly size: Size;
  /** Orientation that the track's matrix gives to its frames, in the words of EXIF. */
  readonly orientation: Orientation;
}

/** Reason why a file gives no poster. */
export interface PosterFault {
  readonly code: 'UNSUPPORTED_MEDIA_TYPE' | 'UNPROCESSABLE_MEDIA' | 'MEDIA_TOO_LARGE';
  /** For the log alone. */
  readonly reason: string;
}

/** Facts that the container of a video or of sound reveals without decoding. */
export interface MovingFacts {
  readonly kind: 'video' | 'audio';
  readonly container: MovingContainer;
  /** RFC 6381 string of the primary video track, else of the first sound track; `mp3` or `pcm` for these. */
  readonly codec: string | undefined;
  /** Seconds, rounded to 0.001; `undefined` if it cannot be found out within the limits. */
  readonly durationS: number | undefined;
  /** `undefined` for a video whose index does not tell. */
  readonly hasAudio: boolean | undefined;
  /** `undefined` for sound, and for a video whose index does not tell. */
  readonly video: VideoTrackFacts | undefined;
  /** Set for everything that gives no poster, sound included. */
  readonly fault: PosterFault | undefined;
}

/** Random access to the bytes of a file that is not held as a whole. */
export interface ByteSource {
  readonly sizeBytes: number;
  /** Reads the bytes `[start, end)`, which lie within the file. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** One key frame for the decoder. */
export interface DecodeOrder {
  readonly codec: VideoCodec;
  /** Annex B (ITU-T H.264, H.265) with parameter sets, or IVF (VP8, VP9, AV1): one access unit. */
  readonly stream: Uint8Array;
  readonly size: Size;
}

/** Largest frame that is decoded (contract §12). */
export const MAX_FRAME_PIXELS = 35_651_584;
export const MAX_FRAME_EDGE_PX = 16_384;

/** Longest head of a Y4M file and of its frame together. */
export const MAX_Y4M_HEAD_BYTES = 512;

/** Returns the most bytes of a Y4M file of one frame: planes of full size, two bytes a sample. */
export function maxFrameBytes({ widthPx, heightPx }: Size): number {
  return MAX_Y4M_HEAD_BYTES + widthPx * heightPx * 3 * 2;
}

/** Decoder of key frames, in a process of its own. */
export interface FrameDecoder {
  /**
   * Decodes one frame into a Y4M file, of one frame if the decoder is sound.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the frame is damaged, or cost the decoder its life
   */
  decode(order: DecodeOrder): Promise<Uint8Array>;
}
