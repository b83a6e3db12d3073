import type { RequestFault } from './errors.ts';
import { type Extension, extensions, type Quality } from './image-formats.ts';

/** Kinds of queries (contract §2); `none` and `file` ignore every parameter. */
export type QueryKind = 'image' | 'sticker' | 'external' | 'file' | 'none';

export type ParameterSyntax =
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number };

export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly form: ParameterSyntax;
  readonly default?: string;
}

/** Parsed query with the resource's defaults; `undefined` for values that were not requested. */
export interface MediaQuery {
  /** Maximum width in pixels. With a height, the result is cropped to their ratio; assets only have a width. */
  readonly widthPx: number | undefined;
  readonly heightPx: number | undefined;
  /** Format requested by parameter; that of an asset is in its path. */
  readonly format: Extension | undefined;
  readonly quality: Quality;
  readonly animated: boolean;
}

export const ASSET_WIDTHS_PX = [
  16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 160, 240, 256, 300, 320, 480,
  512, 600, 640, 1024, 1280, 1536, 2048, 3072, 4096,
] as const;

export const MAX_EDGE_PX = 4096;

/** Maximum `width` and `height` that lenient parsing clamps instead of rejecting, in pixels. */
export const MAX_LENIENT_EDGE_PX = 16_384;

const MAX_QUOTED_LENGTH = 40;

export const qualities = ['high', 'low', 'lossless'] as const satisfies readonly Quality[];

const size: QueryParameter = {
  name: 'size',
  description: 'Width in pixels; the height follows. Nothing is upscaled.',
  form: { kind: 'choice', values: ASSET_WIDTHS_PX.map(String) },
};
const edge = {
  description:
    'In pixels. Width or height alone keeps the aspect ratio; with both, the image is cropped to their ratio. Nothing is upscaled.',
  form: { kind: 'integer', min: 1, max: MAX_EDGE_PX },
} as const;
const format: QueryParameter = {
  name: 'format',
  description:
    "Format of the response. If absent, it is the original's, or webp if Darkroom does not encode that format. An APNG becomes a webp if it stays animated, else a png. For a video, it is the format of its poster; if absent, the response is the video itself.",
  form: { kind: 'choice', values: extensions },
};
const quality: QueryParameter = {
  name: 'quality',
  description: 'Output quality: high (80), low (20) or lossless (100).',
  form: { kind: 'choice', values: qualities },
};
const animated: QueryParameter = {
  name: 'animated',
  description:
    'Whether a WebP, or a GIF of an attachment, keeps the animation. A GIF of an asset always keeps it.',
  form: { kind: 'choice', values: ['true', 'false'] },
};

/** Parameters of each kind of query, in the order of contract §2. */
export const queryParameters: Readonly<Record<QueryKind, readonly QueryParameter[]>> = {
  image: [
    { ...size, default: '128' },
    { ...quality, default: 'high' },
    { ...animated, default: 'false' },
  ],
  // Defaults of stickers: the original's width, lossless, animated.
  sticker: [size, { ...quality, default: 'lossless' }, { ...animated, default: 'true' }],
  external: [
    { name: 'width', ...edge },
    { name: 'height', ...edge },
    format,
    { ...quality, default: 'lossless' },
    { ...animated, default: 'false' },
  ],
  file: [],
  none: [],
};

export type ParsedQuery =
  | { readonly kind: 'valid'; readonly query: MediaQuery }
  | { readonly kind: 'invalid'; readonly faults: readonly RequestFault[] };

/**
 * Parses a query. Ignores parameters that the kind does not have; rejects repeated ones.
 *
 * @param rawQuery text after the `?`, percent-encoded
 * @param isLenient whether messages contain the bounds of lenient parsing
 * @returns the values, or one validation error for each invalid parameter
 */
export function parseQuery(kind: QueryKind, rawQuery: string, isLenient = false): ParsedQuery {
  const parameters = queryParameters[kind];
  const sent = new Map<string, string>();
  const repeated = new Set<string>();
  // URLSearchParams drops a leading `?`, which may be part of the query: `??size=1`.
  for (const [name, value] of new URLSearchParams(`?${rawQuery}`)) {
    if (!parameters.some((parameter) => parameter.name === name)) continue;
    if (sent.has(name)) repeated.add(name);
    sent.set(name, value);
  }
  const faults: RequestFault[] = Array.from(repeated, (path) => ({
    path,
    message: 'Expected the parameter once but received it repeatedly.',
  }));
  const values = new Map<string, string>();
  for (const { name, form: syntax, default: fallback } of parameters) {
    const value = repeated.has(name) ? undefined : sent.get(name);
    if (value !== undefined && !fits(syntax, value)) {
      const message = `Expected ${describeSyntax(syntax, isLenient)} but received ${quote(value)}.`;
      faults.push({ path: name, message });
    } else if (value !== undefined || fallback !== undefined) {
      values.set(name, value ?? fallback ?? '');
    }
  }
  if (faults.length > 0) return { kind: 'invalid', faults };
  const query: MediaQuery = {
    widthPx: toNumber(values.get('size') ?? values.get('width')),
    heightPx: toNumber(values.get('height')),
    format: extensions.find((extension) => extension === values.get('format')),
    quality: qualities.find((each) => each === values.get('quality')) ?? 'high',
    animated: values.get('animated') === 'true',
  };
  return { kind: 'valid', query };
}

function fits(syntax: ParameterSyntax, value: string): boolean {
  if (syntax.kind === 'choice') return syntax.values.includes(value);
  const number = Number(value);
  return /^(?:0|[1-9][0-9]*)$/.test(value) && number >= syntax.min && number <= syntax.max;
}

function describeSyntax(syntax: ParameterSyntax, isLenient: boolean): string {
  if (syntax.kind === 'integer') {
    return `an integer from ${syntax.min} to ${isLenient ? MAX_LENIENT_EDGE_PX : syntax.max}`;
  }
  const { values } = syntax;
  return values.length > 2 ? `one of ${values.join(', ')}` : values.join(' or ');
}

function quote(value: string): string {
  const isLong = value.length > MAX_QUOTED_LENGTH;
  return JSON.stringify(isLong ? `${value.slice(0, MAX_QUOTED_LENGTH)}…` : value);
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}
