import { z } from 'zod';
import {
  type AvMetadata,
  avContainers,
  MAX_FRAME_EDGE_PX,
  MAX_FRAME_PIXELS,
  videoCodecs,
} from '../formats/video/av-metadata.ts';
import { type Packet, ProtocolError } from './packets.ts';
import { FAILURE_CODES, MAX_DETAIL_LENGTH, type WorkerMessage } from './protocol.ts';

/** Maximum bytes of one frame's stream: a key frame of 8 MiB (contract §12) and its parameter sets. */
export const MAX_STREAM_BYTES = 9 * 1024 ** 2;

/** RFC 6381 codec without quoted profiles: `avc1.640028`, `vp09.00.10.08`, `pcm`. */
const CODEC = /^[\w.-]{1,64}$/;

const MAX_REASON_LENGTH = 500;

const byteCount = z.int().nonnegative();
const responseFields = { rssBytes: byteCount };

const sizeUpTo = (maxEdgePx: number) => {
  const edge = z.int().min(1).max(maxEdgePx);
  return z.object({ widthPx: edge, heightPx: edge });
};
const size = sizeUpTo(2 ** 32 - 1);

const track = z.object({
  codec: z.enum(videoCodecs).optional(),
  codedSize: size,
  size,
  orientation: z.literal([1, 2, 3, 4, 5, 6, 7, 8]),
});

const posterError = z.object({
  code: z.enum(['UNSUPPORTED_MEDIA_TYPE', 'UNPROCESSABLE_MEDIA', 'MEDIA_TOO_LARGE']),
  reason: z.string().transform((reason) => reason.slice(0, MAX_REASON_LENGTH)),
});

const metadata = z
  .object({
    kind: z.enum(['video', 'audio']),
    container: z.enum(avContainers),
    codec: z.string().regex(CODEC).optional(),
    durationS: z.number().nonnegative().optional(),
    hasAudio: z.boolean().optional(),
    video: track.optional(),
    posterError: posterError.optional(),
  })
  .refine((read) => read.posterError !== undefined || read.video?.codec !== undefined);

const request = z.object({
  codec: z.enum(videoCodecs),
  size: sizeUpTo(MAX_FRAME_EDGE_PX).refine(
    ({ widthPx, heightPx }) => widthPx * heightPx <= MAX_FRAME_PIXELS,
  ),
});

const headers = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({ kind: z.literal('begun') }),
  z
    .object({ kind: z.literal('read'), start: byteCount, end: byteCount })
    .refine(({ start, end }) => start < end),
  z.object({ kind: z.literal('decode'), request }),
  z.object({ kind: z.literal('rendered'), ...responseFields }),
  z.object({ kind: z.literal('inspected'), metadata, ...responseFields }),
  z.object({
    kind: z.literal('failed'),
    code: z.enum(FAILURE_CODES),
    detail: z.string().transform((detail) => detail.slice(0, MAX_DETAIL_LENGTH)),
    ...responseFields,
  }),
]);

/** Returns only known fields with valid values: the worker may be compromised. @throws ProtocolError */
export function parseMessage({ header, body }: Packet): WorkerMessage {
  if (body === undefined) throw new ProtocolError('a body that does not fit into memory');
  const { data: message } = headers.safeParse(header);
  const isBody = message?.kind === 'rendered' || message?.kind === 'decode';
  if (message === undefined || isBody !== body.length > 0) {
    throw new ProtocolError('an unknown message');
  }
  if (message.kind === 'rendered') return { ...message, body };
  if (message.kind === 'inspected') return { ...message, metadata: message.metadata as AvMetadata };
  if (message.kind !== 'decode') return message;
  if (body.length > MAX_STREAM_BYTES) throw new ProtocolError('a stream that is too long');
  return { kind: 'decode', request: { ...message.request, stream: body } };
}
