import { z } from 'zod';
import { MediaError, type RequestFault } from './errors.ts';
import { decodeSegment, isOriginKey, unmarkedKeyOf } from './media-path.ts';
import { splitTarget } from './media-request.ts';
import type { Resources } from './resources.ts';

/** Metadata derived from the bytes, as in a response; `null` if not applicable or unknown. */
const derivedMetadata = z.object({
  size: z.int().min(0).describe('Bytes.'),
  content_type: z
    .string()
    .describe('Detected by content: the Content-Type of the original if it is sent unchanged.'),
  kind: z.enum(['image', 'video', 'audio', 'file']),
  width: z.int().min(1).nullable().describe('After orientation, in square pixels.'),
  height: z.int().min(1).nullable(),
  animated: z.boolean().nullable().describe('Whether an image has more than one frame.'),
  frames: z
    .int()
    .min(1)
    .nullable()
    .describe('Number of frames of an image; null beyond `MAX_FRAMES`.'),
  duration: z
    .number()
    .min(0)
    .nullable()
    .describe('Seconds, for videos, audio files and animations.'),
  codec: z
    .string()
    .nullable()
    .describe(
      'RFC 6381 string of the first video track, else of the first audio track. MP3 and PCM are `mp3` and `pcm`.',
    ),
  has_audio: z.boolean().nullable(),
});
export type DerivedMetadata = z.infer<typeof derivedMetadata>;

/** Outcomes of removing metadata from an upload (contract §16). */
export const metadataOutcomes = ['removed', 'none', 'not-supported'] as const;
export type MetadataOutcome = (typeof metadataOutcomes)[number];

const FORMATS: Readonly<Record<string, string>> = {
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/x-m4a': 'm4a',
  'video/quicktime': 'mov',
  'video/matroska': 'mkv',
  'video/x-matroska': 'mkv',
};

export function formatNameOf(contentType: string): string {
  const subtype = contentType.slice(contentType.indexOf('/') + 1);
  return FORMATS[contentType] ?? subtype.toLowerCase().replace(/^x-/, '');
}

/** Cached metadata of one state of an original. The names are stored in the result store. */
const cachedMetadata = z.object({
  facts: derivedMetadata,
  /** Whether the original is renderable by a service that has a decoder for it. */
  isSound: z.boolean(),
  placeholder: z.string().nullable().optional(),
});
export type CachedMetadata = Readonly<z.infer<typeof cachedMetadata>>;

export function formatCachedMetadata(metadata: CachedMetadata): Uint8Array {
  return Buffer.from(JSON.stringify(metadata));
}

/** Parses cached metadata; returns `undefined` for unknown formats. */
export function parseCachedMetadata(stored: Uint8Array): CachedMetadata | undefined {
  try {
    return cachedMetadata.parse(JSON.parse(Buffer.from(stored).toString()));
  } catch {
    return undefined;
  }
}

/** Response to a request for metadata (contract §13). */
const mediaMetadata = z.object({
  key: z.string().describe('Key of the original in the storage.'),
  etag: z.string().nullable().describe('ETag of the object in the storage, with quotes.'),
  ...derivedMetadata.shape,
  transformable: z.boolean().describe('Whether Darkroom would try to render the original.'),
  placeholder: z
    .string()
    .nullable()
    .describe('ThumbHash of the auto-oriented image or poster, as unpadded base64.'),
  placeholder_version: z.literal(1).nullable(),
  sha256: z
    .string()
    .regex(/^[\da-f]{64}$/)
    .nullable(),
});
export type MediaMetadata = z.infer<typeof mediaMetadata>;

/** Returns a JSON Schema (draft 2020-12) of a response, for the OpenAPI document. */
export function describeMetadata(): Readonly<Record<string, unknown>> {
  const { $schema: _, ...schema } = z.toJSONSchema(mediaMetadata);
  return schema;
}

export interface MetadataRequest {
  readonly originKey: string;
  readonly wantsPlaceholder: boolean;
  readonly wantsSha256: boolean;
}

export const METADATA_PATH = '/metadata/';

/** Parameters of a request, which are `true` or `false`. */
export const metadataParameters = {
  placeholder: {
    default: true,
    description: 'Whether the placeholder is computed, which renders the original.',
  },
  sha256: {
    default: false,
    description: 'Whether the digest is computed, for which the original is read completely.',
  },
} as const;

/** @throws MediaError `INVALID_FORM_BODY` with all validation errors */
export function parseMetadataTarget(target: string, resources?: Resources): MetadataRequest {
  const [path, query] = splitTarget(target);
  const faults: RequestFault[] = [];
  const segments = path.slice(METADATA_PATH.length).split('/').map(decodeSegment);
  const isDecoded = segments.every((segment) => segment !== undefined && !segment.includes('/'));
  const key = segments.join('/');
  if (!isDecoded || !isOriginKey(key, resources)) {
    const message = 'Expected an origin key, such as attachments/1/2/clip.mp4, percent-encoded.';
    faults.push({ path: 'key', message });
  }
  const parameters = new URLSearchParams(query);
  const read = (name: keyof typeof metadataParameters): boolean => {
    const values = parameters.getAll(name);
    const [value = String(metadataParameters[name].default)] = values;
    const isKnown = value === 'true' || value === 'false';
    if (values.length > 1 || !isKnown) {
      faults.push({ path: name, message: 'Expected true or false, once.' });
    }
    return value === 'true';
  };
  const wanted = { wantsPlaceholder: read('placeholder'), wantsSha256: read('sha256') };
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  // Operators may copy a hash with its `a_` from a URL.
  return { originKey: unmarkedKeyOf(key, resources) ?? key, ...wanted };
}
