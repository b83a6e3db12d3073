import type { MediaPath } from './media-path.ts';
import { findPathValueFault } from './path-value.ts';
import {
  fillTemplate,
  originKeyTemplates,
  resourceRows,
  type TemplateSegment,
} from './resources.ts';

/** An original's key, taken apart; every value has passed its rule. */
export type OriginKey = Pick<MediaPath, 'resource' | 'values'>;

/**
 * The key of the original in the origin (contract §1), built from the parsed values, never from the raw
 * path; `undefined` for what is shipped with the service.
 */
export function originKeyOf({ resource, values }: OriginKey): string | undefined {
  const { originKey } = resourceRows[resource];
  if (originKey === undefined) return undefined;
  return fillTemplate(originKey, (name) => unmark(name, values[name] ?? ''));
}

/** A hash without its mark of animation; any other value as it is. */
function unmark(name: string, value: string): string {
  return name.endsWith('_hash') ? value.replace(/^a_/, '') : value;
}

/**
 * Reads the key of an original (contract §1): `originKeyOf` of what it gives is the key again. `undefined` for a
 * text that has the form of none.
 */
export function parseOriginKey(text: string): OriginKey | undefined {
  const segments = text.split('/');
  for (const template of originKeyTemplates) {
    if (template.segments.length !== segments.length) continue;
    const values: Record<string, string> = {};
    const fits = template.segments.every((part, position) => {
      const segment = segments[position] ?? '';
      if (part.kind === 'placeholder') {
        // A key has no mark of animation: what looks like one needs another before it in a path.
        const isMarked = part.name.endsWith('_hash') && segment.startsWith('a_');
        values[part.name] = isMarked ? `a_${segment}` : segment;
      }
      return fitsSegment(part, segment);
    });
    if (fits) return { resource: template.resource, values };
  }
  return undefined;
}

/** Whether a text has the form of an original's key (contract §1). */
export function isOriginKey(text: string): boolean {
  return parseOriginKey(text) !== undefined;
}

/**
 * The key that is meant where an animated hash was copied from a URL, or from the API, with its `a_`, which
 * no stored key has; `undefined` for a text that is no key, or has none.
 */
export function unmarkedKeyOf(text: string): string | undefined {
  const key = parseOriginKey(text);
  if (key === undefined) return undefined;
  const values = Object.fromEntries(
    Object.entries(key.values).map(([name, value]) => [name, unmark(name, value)]),
  );
  const unmarked = originKeyOf({ ...key, values });
  return unmarked === text ? undefined : unmarked;
}

/**
 * Whether keys of originals can begin so: with whole segments, a slash between them and none behind the
 * last, all of a key or the first of them.
 */
export function canBeginOriginKey(text: string): boolean {
  const segments = text.split('/');
  return originKeyTemplates.some(
    (template) =>
      segments.length <= template.segments.length &&
      segments.every((segment, position) => {
        const part = template.segments[position];
        return part !== undefined && fitsSegment(part, segment);
      }),
  );
}

function fitsSegment(part: TemplateSegment, segment: string): boolean {
  return part.kind === 'literal'
    ? part.text === segment
    : findPathValueFault(part.name, segment) === undefined;
}
