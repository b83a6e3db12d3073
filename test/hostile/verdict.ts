import sharp, { type Metadata } from 'sharp';
import {
  type OutputFormat,
  outputFormats,
  sourceFormats,
} from '../../src/contract/image-formats.ts';
import { type MediaRequest, parseTarget } from '../../src/contract/media-request.ts';
import { readImageHeader } from '../../src/formats/containers.ts';
import type { ImageHeader, Size } from '../../src/formats/image-header.ts';
import { sniffAv } from '../../src/formats/video/sniff-av.ts';

/** A complete response of the service. */
export interface ServiceResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Whether the original reached a decoder. */
export function wasRendered({ headers }: ServiceResponse): boolean {
  return /\brender\b/.test(headers.get('server-timing') ?? '');
}

/** Permitted errors for any original: neither the service nor the origin is at fault. */
const REFUSALS = [
  '415 UNSUPPORTED_MEDIA_TYPE',
  '422 MEDIA_TOO_LARGE',
  '422 UNPROCESSABLE_MEDIA',
  '504 TRANSFORM_TIMEOUT',
];

/** Maximum number of pixels to decode completely; of larger responses, only the first frame is decoded. */
const MAX_DECODED_PX = 8_000_000;

/**
 * Checks the response to a hostile original: an error of the contract, or a complete image of the requested format,
 * size and timing. Returns defects, one sentence each.
 */
export async function findDefects(
  original: Buffer,
  target: string,
  response: ServiceResponse,
): Promise<string[]> {
  const parsed = parseTarget(target);
  if (parsed.kind !== 'media') throw new Error(`Expected a media path but received ${target}`);
  const { status, headers, body } = response;
  const defects: string[] = [];
  if (headers.get('x-content-type-options') !== 'nosniff') defects.push('no nosniff');
  if (parsed.request.isPassthrough) {
    if (status !== 200) defects.push(`status ${status} of a passthrough`);
    else if (!body.equals(original))
      defects.push(`${body.length} bytes, other than the original's`);
  } else if (status === 200) {
    defects.push(...(await findImageDefects(original, parsed.request, response)));
  } else {
    const refusal = `${status} ${JSON.parse(body.toString()).code}`;
    if (!REFUSALS.includes(refusal)) defects.push(refusal);
  }
  return defects;
}

async function findImageDefects(
  original: Buffer,
  request: MediaRequest,
  { headers, body }: ServiceResponse,
): Promise<string[]> {
  const header = readImageHeader(original);
  if (header === undefined) return findPosterDefects(original, request, body);
  const { encodesAs, animatesAs = encodesAs } = sourceFormats[header.format];
  const isAnimation = request.isAnimated && header.animation !== undefined;
  const format = request.format ?? (isAnimation ? animatesAs : encodesAs);
  const defects: string[] = [];
  const type = headers.get('content-type');
  if (type !== outputFormats[format].mimeType) defects.push(`${type} instead of ${format}`);
  const size = sizeOf(header, request, format);
  if (body.equals(original)) {
    // The test process must not decode hostile originals.
    if (header.format !== format || !header.isClean)
      defects.push('sent unmodified, although not clean');
    if (size.widthPx !== header.widthPx)
      defects.push('sent unmodified, although another size was requested');
    return defects;
  }
  return [...defects, ...(await findRenderDefects(header, request, format, size, body))];
}

/** A poster must be a complete picture of the format; only its own header reveals its size. */
async function findPosterDefects(
  original: Buffer,
  { format }: MediaRequest,
  body: Buffer,
): Promise<string[]> {
  if (sniffAv(original) === undefined) return ['an image of a file that is not an image'];
  try {
    await sharp(body, { failOn: 'warning', limitInputPixels: false }).stats();
    const made = (await sharp(body).metadata()).format;
    return made === format ? [] : [`${made} instead of ${format}`];
  } catch (error) {
    return [`an incomplete poster: ${error}`];
  }
}

async function findRenderDefects(
  header: ImageHeader,
  request: MediaRequest,
  format: OutputFormat,
  size: Size,
  body: Buffer,
): Promise<string[]> {
  try {
    const metadata = await sharp(body, { animated: true, limitInputPixels: false }).metadata();
    const pages = metadata.pages ?? 1;
    const heightPx = metadata.pageHeight ?? metadata.height;
    const decoded = metadata.width * heightPx * pages <= MAX_DECODED_PX ? -1 : 1;
    const options = { pages: decoded, failOn: 'warning', limitInputPixels: false } as const;
    await sharp(body, options).raw().toBuffer();
    const defects: string[] = [];
    if (metadata.format !== format) defects.push(`${metadata.format} instead of ${format}`);
    if (metadata.width !== size.widthPx || heightPx !== size.heightPx) {
      const expected = `${size.widthPx}×${size.heightPx}`;
      defects.push(`${metadata.width}×${heightPx} px instead of ${expected}`);
    }
    for (const part of ['exif', 'xmp', 'iptc', 'icc'] as const) {
      if (metadata[part] !== undefined) defects.push(`the result has ${part}`);
    }
    const canMove = request.isAnimated && outputFormats[format].canAnimate;
    const animation = canMove ? header.animation : undefined;
    return [...defects, ...findTimingDefects(metadata, format, animation)];
  } catch (error) {
    return [`an incomplete image: ${error}`];
  }
}

/** Frames, delays and loop of the original (contract §3), as far as the format supports them. */
function findTimingDefects(
  { pages = 1, delay, loop }: Metadata,
  format: OutputFormat,
  animation: ImageHeader['animation'],
): string[] {
  const { delaysMs, plays } = animation ?? { delaysMs: [0], plays: 0 };
  // A single frame is a still, even of an animation.
  if (delaysMs.length === 1) return pages === 1 ? [] : [`${pages} frames of a still`];
  if (pages !== delaysMs.length) return [`${pages} frames instead of ${delaysMs.length}`];
  const [unitMs, maxUnits] = format === 'gif' ? [10, 65_535] : [1, 2 ** 24 - 1];
  // Each frame begins at the unit nearest to its exact time.
  let exactMs = 0;
  let units = 0;
  const isTimed = delaysMs.every((delayMs, index) => {
    exactMs += delayMs;
    const before = units;
    units = Math.round(exactMs / unitMs + 1e-6);
    return delay?.[index] === unitMs * Math.min(maxUnits, units - before);
  });
  const most = format === 'gif' ? 65_536 : 65_535;
  return [
    ...(isTimed ? [] : ['other delays']),
    ...(loop === Math.min(plays, most) ? [] : [`plays ${loop} times instead of ${plays}`]),
  ];
}

/** Contract §3, implemented independently. */
function sizeOf(header: ImageHeader, request: MediaRequest, format: OutputFormat): Size {
  const [width, height] =
    header.orientation >= 5 ? [header.heightPx, header.widthPx] : [header.widthPx, header.heightPx];
  const box = { width: request.widthPx, height: request.heightPx };
  if (box.width !== undefined && box.height !== undefined) {
    const scale = Math.min(1, width / box.width, height / box.height);
    return { widthPx: edge(box.width * scale), heightPx: edge(box.height * scale) };
  }
  const scale = Math.min(1, (box.width ?? width) / width, (box.height ?? height) / height);
  const longest = edge(Math.max(width, height) * scale);
  const limit = outputFormats[format].maxEdgePx;
  const fitted = longest > limit ? limit / Math.max(width, height) : scale;
  return { widthPx: edge(width * fitted), heightPx: edge(height * fitted) };
}

const edge = (lengthPx: number): number => Math.max(1, Math.round(lengthPx));
