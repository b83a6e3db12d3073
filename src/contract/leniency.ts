/** Converts lenient requests of the platform's clients to strict ones, with equal cache keys (contract §14, "Leniency"). */

import { type Extension, extensions as formats, sourceExtensions } from './image-formats.ts';
import { decodeSegment, parsePath, splitExtension } from './media-path.ts';
import {
  ASSET_WIDTHS_PX,
  MAX_EDGE_PX,
  MAX_LENIENT_EDGE_PX,
  qualities,
  queryParameters,
} from './media-query.ts';
import { type ResourceName, type Resources, resourceRows } from './resources.ts';
import { isExternalPath } from './signing/external-path.ts';

type Sent = Readonly<Record<string, string | undefined>>;

interface Subject {
  readonly resource: ResourceName;
  /** Whether the hash has the prefix `a_` of animated originals. */
  readonly isMarkedAnimated: boolean;
}

/** Functions that compute strict parameters; `undefined` omits a parameter. */
const lenientParameters: Readonly<
  Record<string, (sent: Sent, subject: Subject) => string | undefined>
> = {
  size: ({ size = '' }, { resource }) => String(snapWidth(size, resource)),
  width: ({ width }) => clampEdge(width),
  height: ({ height }) => clampEdge(height),
  format: findFormat,
  quality: ({ quality }) =>
    quality === undefined || qualities.some((each) => each === quality) ? quality : 'high',
  animated: ({ animated }, { isMarkedAnimated }) =>
    String(animated === undefined ? isMarkedAnimated : isTrue(animated)),
};

const DEFAULT_WIDTH_PX = 128;

/** Minimum and maximum width in pixels of avatars, icons and other assets without an entry in `boundsPx`. */
const defaultBoundsPx = [128, 1024] as const;
const banner = [480, 2048] as const;
const boundsPx: Readonly<Partial<Record<ResourceName, readonly [min: number, max: number]>>> = {
  'guild banner': banner,
  'member banner': banner,
  'guild splash': banner,
  'guild embed splash': banner,
  'custom emoji': [32, 512],
  sticker: [128, 512],
};

/** Accepted extensions of assets. Assets in formats that are not in the contract are sent as WebP. */
const assetExtensions = [...sourceExtensions, 'jxl', 'svg'];

export interface StrictTarget {
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly isDownload: boolean;
}

/** Converts a lenient request to a strict one. Keeps values that are invalid in both, so that the check reports them. */
export function normalizeLenient(
  rawPath: string,
  rawQuery: string,
  resources: Resources,
): StrictTarget {
  const sent: Sent = Object.fromEntries(new URLSearchParams(`?${rawQuery}`));
  const isDownload = isTrue(sent.download ?? '');
  const resource = isExternalPath(rawPath) ? 'external media' : resourceAt(rawPath, resources);
  if (resource === undefined) return { rawPath, rawQuery, isDownload };
  const last = decodeSegment(rawPath.slice(rawPath.lastIndexOf('/') + 1)) ?? '';
  const { extensions, query } = resourceRows[resource];
  const subject = { resource, isMarkedAnimated: extensions !== undefined && last.startsWith('a_') };
  const strict = new URLSearchParams();
  for (const { name } of queryParameters[query]) {
    const value = lenientParameters[name]?.(sent, subject);
    if (value !== undefined) strict.set(name, value);
  }
  return {
    rawPath: extensions === undefined ? rawPath : replaceExtension(rawPath, last, sent, resource),
    rawQuery: strict.toString(),
    isDownload,
  };
}

function resourceAt(rawPath: string, resources: Resources): ResourceName | undefined {
  const parsed = parsePath(rawPath, resources);
  if (parsed.kind === 'no template') return undefined;
  return parsed.kind === 'valid' ? parsed.path.resource : parsed.resource;
}

function replaceExtension(
  rawPath: string,
  last: string,
  sent: Sent,
  resource: ResourceName,
): string {
  const [stem, extension] = splitExtension(last);
  const strict = findExtension(extension, sent, resource);
  if (strict === undefined) return rawPath;
  const directory = rawPath.slice(0, rawPath.lastIndexOf('/') + 1);
  return `${directory}${encodeURIComponent(stem)}.${strict}`;
}

/** Returns the extension requested by parameter or path, or WebP; `undefined` if the one in the path is unknown. */
function findExtension(
  extension: string,
  sent: Sent,
  resource: ResourceName,
): Extension | undefined {
  const { extensions = [], query } = resourceRows[resource];
  if (query === 'sticker') return /^[a-z0-9]+$/i.test(extension) ? 'webp' : undefined;
  const lower = extension.toLowerCase();
  if (!assetExtensions.includes(lower)) return undefined;
  const wanted = query === 'none' ? [lower] : [findFormat(sent), lower, 'webp'];
  return wanted.flatMap((name) => extensions.find((each) => each === name) ?? [])[0];
}

function findFormat({ format, fmt }: Sent): Extension | undefined {
  const named = [format, fmt].map((text) => formats.find((each) => each === text?.toLowerCase()));
  return named.find((each) => each !== undefined);
}

function snapWidth(text: string, resource: ResourceName): number {
  const [min, max] = boundsPx[resource] ?? defaultBoundsPx;
  const widthPx = /^\d+$/.test(text) && Number(text) > 0 ? Number(text) : DEFAULT_WIDTH_PX;
  const listed = ASSET_WIDTHS_PX.find((each) => each >= widthPx) ?? max;
  return Math.min(Math.max(listed, min), max);
}

function clampEdge(text: string | undefined): string | undefined {
  const isClamped = /^[1-9]\d*$/.test(text ?? '') && Number(text) <= MAX_LENIENT_EDGE_PX;
  return isClamped ? String(Math.min(Number(text), MAX_EDGE_PX)) : text;
}

function isTrue(text: string): boolean {
  return text === '1' || text.toLowerCase() === 'true';
}
