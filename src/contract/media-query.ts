import { z } from 'zod';
import type { RequestFault } from './errors.ts';
import type { Extension, Quality } from './image-formats.ts';
import { ASSET_WIDTHS_PX, DEFAULT_ASSET_WIDTH_PX, MAX_ATTACHMENT_EDGE_PX } from './limits.ts';
import type { QueryKind } from './resources.ts';

/** Values of a query with the resource's defaults filled in; `undefined` is "not asked for". */
export interface MediaQuery {
  /** Bounds of the answer in pixels; assets have a width alone. */
  readonly widthPx: number | undefined;
  readonly heightPx: number | undefined;
  /** Format asked for by parameter; an asset's format is in its path. */
  readonly format: Extension | undefined;
  readonly quality: Quality;
  readonly animated: boolean;
}

/** Longest piece of a received value that an answer repeats, in characters. */
const MAX_QUOTED_LENGTH = 40;

const expected =
  (what: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    `Expected ${what} but received ${quote(input)}.`;

const qualities = ['high', 'low', 'lossless'] as const;
const quality = z
  .enum(qualities, { error: expected(`one of ${qualities.join(', ')}`) })
  .meta({ description: 'How much is lost: high (80), low (20) or lossless (100).' });
const animated = z
  .enum(['true', 'false'], { error: expected('true or false') })
  .meta({
    description:
      'Whether an animation is kept as WebP. GIF assets always keep it; attachments, of either format, only with true.',
  })
  .transform((text) => text === 'true');

const listedWidths = ASSET_WIDTHS_PX.map(String);
const size = z
  .enum(listedWidths, { error: expected(`one of ${listedWidths.join(', ')}`) })
  .meta({ description: 'Width in pixels; the height follows. Nothing is enlarged.' })
  .transform(Number);

const edge = z
  .string()
  .refine((text) => /^[1-9][0-9]{0,3}$/.test(text) && Number(text) <= MAX_ATTACHMENT_EDGE_PX, {
    error: expected(`an integer from 1 to ${MAX_ATTACHMENT_EDGE_PX}`),
  })
  .meta({
    type: 'integer',
    minimum: 1,
    maximum: MAX_ATTACHMENT_EDGE_PX,
    description:
      'In pixels. One edge alone keeps the aspect ratio, both crop to theirs. Nothing is enlarged.',
  })
  .transform(Number);

const formats = ['png', 'jpg', 'jpeg', 'webp', 'gif'] as const satisfies readonly Extension[];
const format = z.enum(formats, { error: expected(`one of ${formats.join(', ')}`) }).meta({
  description: "Without it, the original's own, or webp where that has no encoder.",
});

/** One schema per query kind, keyed by the contract's parameter names: the tables of spec §2. */
export const querySchemas = {
  image: z
    .object({
      size: size.default(DEFAULT_ASSET_WIDTH_PX),
      quality: quality.default('high'),
      animated: animated.default(false),
    })
    .transform(
      (query): MediaQuery => ({
        ...query,
        widthPx: query.size,
        heightPx: undefined,
        format: undefined,
      }),
    ),
  // A bare sticker URL shows the sticker as it was made: own width, lossless, animated.
  sticker: z
    .object({
      size: size.optional(),
      quality: quality.default('lossless'),
      animated: animated.default(true),
    })
    .transform(
      (query): MediaQuery => ({
        ...query,
        widthPx: query.size,
        heightPx: undefined,
        format: undefined,
      }),
    ),
  external: z
    .object({
      width: edge.optional(),
      height: edge.optional(),
      format: format.optional(),
      quality: quality.default('lossless'),
      animated: animated.default(false),
    })
    .transform(
      (query): MediaQuery => ({
        ...query,
        widthPx: query.width,
        heightPx: query.height,
        format: query.format,
      }),
    ),
} as const;

/** What a query turned out to be. */
export type ParsedQuery =
  | { readonly kind: 'valid'; readonly query: MediaQuery }
  | { readonly kind: 'invalid'; readonly faults: readonly RequestFault[] };

/**
 * Reads the query of a request target.
 *
 * @param kind the resource's schema
 * @param rawQuery what follows the `?`, still percent-encoded
 * @returns the values; or the faults, one per parameter at fault. Parameters that the schema does
 *   not name are ignored; one that it names may stand only once
 */
export function parseQuery(kind: Exclude<QueryKind, 'none'>, rawQuery: string): ParsedQuery {
  const schema = querySchemas[kind];
  const names = Object.keys(schema.in.shape);
  const given: Record<string, string> = {};
  const faults: RequestFault[] = [];
  const repeated = new Set<string>();
  // URLSearchParams drops a leading `?`; without ours it would take the second one of `??size=1`.
  for (const [name, value] of new URLSearchParams(`?${rawQuery}`)) {
    if (!names.includes(name)) continue;
    if (Object.hasOwn(given, name)) repeated.add(name);
    given[name] = value;
  }
  for (const name of repeated) {
    delete given[name];
    faults.push({ path: name, message: 'Expected the parameter once but received it repeatedly.' });
  }

  const result = schema.safeParse(given);
  if (!result.success) {
    for (const { path, message } of result.error.issues) {
      faults.push({ path: path.join('.'), message });
    }
  }
  return result.success && faults.length === 0
    ? { kind: 'valid', query: result.data }
    : { kind: 'invalid', faults };
}

function quote(value: unknown): string {
  const text = String(value);
  const shown = text.length > MAX_QUOTED_LENGTH ? `${text.slice(0, MAX_QUOTED_LENGTH)}…` : text;
  return JSON.stringify(shown);
}
