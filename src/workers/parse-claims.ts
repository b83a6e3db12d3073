import type { Orientation, Size } from '../formats/image-facts.ts';
import {
  type DecodeOrder,
  type MovingFacts,
  movingContainers,
  type VideoTrackFacts,
  videoCodecs,
} from '../formats/video/video-facts.ts';

/**
 * Parsers of values that a worker claims, which may be compromised: only what has its form becomes a value, without
 * anything else that the worker sent.
 */

/** Longest stream of one frame: a key frame of 8 MiB (contract §12) and its parameter sets, in bytes. */
export const MAX_STREAM_BYTES = 9 * 1024 ** 2;

/** Largest frame that is decoded (contract §12). */
const MAX_FRAME_PIXELS = 35_651_584;
const MAX_FRAME_EDGE_PX = 16_384;

/** Bytes of a pixel in 4:4:4 with two bytes for each sample. */
const MAX_PIXEL_BYTES = 6;

/** Longest head of a Y4M file of one frame, in bytes. */
const MAX_Y4M_HEAD_BYTES = 512;

/** RFC 6381, but for profiles in quotes: `avc1.640028`, `vp09.00.10.08`, `pcm`. */
const CODEC = /^[\w.-]{1,64}$/;

/** Longest reason for the log, in UTF-16 units. */
const MAX_REASON_LENGTH = 500;

const faultCodes = ['UNSUPPORTED_MEDIA_TYPE', 'UNPROCESSABLE_MEDIA', 'MEDIA_TOO_LARGE'] as const;

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

export function isByteCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Parses an order for the decoder; `undefined` unless it is within the limits. */
export function parseDecodeOrder(value: unknown, stream: Uint8Array): DecodeOrder | undefined {
  if (!isRecord(value) || stream.length > MAX_STREAM_BYTES) return undefined;
  const { maxFrameBytes } = value;
  const codec = oneOf(videoCodecs, value.codec);
  const size = parseSize(value.size, MAX_FRAME_EDGE_PX);
  if (codec === undefined || size === undefined || !isByteCount(maxFrameBytes)) return undefined;
  const pixels = size.widthPx * size.heightPx;
  const mostBytes = pixels * MAX_PIXEL_BYTES + MAX_Y4M_HEAD_BYTES;
  if (pixels > MAX_FRAME_PIXELS || maxFrameBytes > mostBytes) return undefined;
  return { codec, stream, size, maxFrameBytes };
}

/** Parses the facts of a video or of sound; `undefined` if they have another form. */
export function parseMovingFacts(value: unknown): MovingFacts | undefined {
  if (!isRecord(value)) return undefined;
  const { codec, durationS, hasAudio } = value;
  const kind = oneOf(['video', 'audio'] as const, value.kind);
  const container = oneOf(movingContainers, value.container);
  const video = parseTrack(value.video);
  const fault = parseFault(value.fault);
  if (kind === undefined || container === undefined) return undefined;
  if (hasAudio !== undefined && typeof hasAudio !== 'boolean') return undefined;
  if (!isMissingOr(codec, isCodecName) || !isMissingOr(durationS, isDuration)) return undefined;
  if (video === 'malformed' || fault === 'malformed') return undefined;
  if (fault === undefined && video?.codec === undefined) return undefined;
  return { kind, container, codec, durationS, hasAudio, video, fault };
}

function parseTrack(value: unknown): VideoTrackFacts | 'malformed' | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) return 'malformed';
  const codec = oneOf(videoCodecs, value.codec);
  const codedSize = parseSize(value.codedSize);
  const size = parseSize(value.size);
  const { orientation } = value;
  const isKnown = value.codec === undefined || codec !== undefined;
  if (!isKnown || codedSize === undefined || size === undefined) return 'malformed';
  return isOrientation(orientation) ? { codec, codedSize, size, orientation } : 'malformed';
}

function parseFault(value: unknown): MovingFacts['fault'] | 'malformed' {
  if (value === undefined) return undefined;
  if (!isRecord(value)) return 'malformed';
  const { reason } = value;
  const code = oneOf(faultCodes, value.code);
  if (code === undefined || typeof reason !== 'string') return 'malformed';
  return { code, reason: reason.slice(0, MAX_REASON_LENGTH) };
}

function parseSize(value: unknown, maxEdgePx = 2 ** 32 - 1): Size | undefined {
  const { widthPx, heightPx } = isRecord(value) ? value : {};
  const isEdge = (edge: unknown): edge is number =>
    isByteCount(edge) && edge >= 1 && edge <= maxEdgePx;
  return isEdge(widthPx) && isEdge(heightPx) ? { widthPx, heightPx } : undefined;
}

function isOrientation(value: unknown): value is Orientation {
  return isByteCount(value) && value >= 1 && value <= 8;
}

function isCodecName(value: unknown): value is string {
  return typeof value === 'string' && CODEC.test(value);
}

function isDuration(value: unknown): value is number {
  return Number.isFinite(value) && Number(value) >= 0;
}

function isMissingOr<Value>(
  value: unknown,
  has: (value: unknown) => value is Value,
): value is Value | undefined {
  return value === undefined || has(value);
}

function oneOf<Word extends string>(words: readonly Word[], value: unknown): Word | undefined {
  return words.find((word) => word === value);
}
