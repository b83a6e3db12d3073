import { z } from 'zod';
import { MediaError } from './errors.ts';
import { findKeyFault } from './media-path.ts';
import { formatNameOf, type MediaMetadata } from './metadata.ts';

/** Media in a request to an internal route (contract §14). */
export type InternalSubject =
  | { readonly type: 'external'; readonly url: string }
  | { readonly type: 'upload'; readonly key: string }
  | { readonly type: 's3'; readonly bucket: string; readonly key: string }
  | { readonly type: 'base64'; readonly bytes: Uint8Array };

const MAX_EDGE_PX = 16_384;

const key = z.string().superRefine((text, { addIssue }) => {
  const message = findKeyFault(text);
  if (message !== undefined) addIssue(message);
});

const base64 = z.string().transform((text, { addIssue }) => {
  const digits = text.slice(text.lastIndexOf(',') + 1);
  if (/^[A-Za-z\d+/]*={0,2}$/.test(digits)) return Buffer.from(digits, 'base64');
  addIssue('Expected standard base64.');
  return z.NEVER;
});

const upload = z
  .object({ type: z.literal('upload'), upload_filename: key })
  .transform(({ upload_filename }): InternalSubject => ({ type: 'upload', key: upload_filename }));

const subject = z.union([
  upload,
  z
    .object({ type: z.literal('external'), url: z.string().max(8_192) })
    .transform(({ url }): InternalSubject => ({ type: 'external', url })),
  z
    .object({ type: z.literal('s3'), bucket: z.string(), key })
    .transform(({ bucket, key }): InternalSubject => ({ type: 's3', bucket, key })),
  z
    .object({ type: z.literal('base64'), base64 })
    .transform(({ base64: bytes }): InternalSubject => ({ type: 'base64', bytes })),
]);

const version = z.literal(2).optional();

/** Options of `/_metadata`; those for NSFW media have no effect without a scanner. */
const metadataOptions = z.object({
  version,
  nsfw: z.enum(['block', 'flag', 'allow']).optional(),
  isNSFWAllowed: z.boolean().optional(),
  with_base64: z.boolean().default(false),
});

const framesOptions = z.object({ version });

export const internalBodies = {
  '/_metadata': () => describe(z.intersection(metadataOptions, subject)),
  '/_frames': () => describe(z.intersection(framesOptions, subject)),
  '/_sniff': () => describe(upload),
  '/_thumbnail': () => describe(upload),
} as const;
export type InternalPath = keyof typeof internalBodies;

function describe(schema: z.ZodType): Readonly<Record<string, unknown>> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input' });
  return described;
}

/** Parses the body of `/_metadata`. @throws MediaError `INVALID_FORM_BODY` with all faults */
export function parseMetadataRequest(body: unknown) {
  const { with_base64: wantsBytes } = parse(metadataOptions, body);
  return { subject: parse(subject, body), wantsBytes };
}

export function parseFramesRequest(body: unknown): InternalSubject {
  parse(framesOptions, body);
  return parse(subject, body);
}

/** Parses the body of `/_sniff` and `/_thumbnail`. @throws MediaError `INVALID_FORM_BODY` with all faults */
export function parseUploadRequest(body: unknown): InternalSubject {
  return parse(upload, body);
}

function parse<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => ({
    path: path.join('.') || 'body',
    message,
  }));
  throw new MediaError('INVALID_FORM_BODY', { faults });
}

/**
 * Formats metadata as the platform expects them.
 *
 * @param bytes media to include as base64, if requested
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE` for media without metadata, `MEDIA_TOO_LARGE`
 */
export function formatMetadata(metadata: MediaMetadata, bytes: Uint8Array | undefined) {
  const { kind, width, height, animated, duration, placeholder, sha256, size } = metadata;
  const isPicture = kind === 'image' || kind === 'video';
  if (kind === 'file' || (isPicture && width === null)) {
    throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
  }
  if (sha256 === null || Math.max(width ?? 0, height ?? 0) > MAX_EDGE_PX) {
    throw new MediaError('MEDIA_TOO_LARGE');
  }
  const isAudio = kind === 'audio' && metadata.content_type === 'video/mp4';
  const [bareType = ''] = metadata.content_type.split(';');
  const contentType = isAudio ? 'audio/mp4' : bareType;
  return {
    format: formatNameOf(contentType),
    content_type: contentType,
    content_hash: sha256,
    size,
    width,
    height,
    animated: animated ?? false,
    ...(duration !== null && { duration: Math.ceil(duration) }),
    ...(placeholder !== null && { placeholder }),
    nsfw: false,
    nsfw_probability: 0,
    // Buffer.from(bytes) would copy them.
    ...(bytes && {
      base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    }),
  };
}

/** Types that `/_sniff` withholds, because browsers and the platform may interpret them differently. */
const WITHHELD_TYPES =
  /^(?:text\/|image\/svg|application\/(?:pdf|xml|octet-stream|postscript|rtf))/;

export function formatSniffed(contentType: string): { readonly content_type: string | null } {
  const [bareType = ''] = contentType.split(';');
  return { content_type: WITHHELD_TYPES.test(bareType) ? null : bareType };
}
