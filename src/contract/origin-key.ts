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
 * Returns the key of the original in the origin (contract §1), built from the parsed values, never from the raw path;
 * `undefined` for resources that are shipped with the service.
 */
export function originKeyOf({ resource, values }: OriginKey): string | undefined {
  const { originKey } = resourceRows[resource];
  if (originKey === undefined) return undefined;
  return fillTemplate(originKey, (name) => unmark(name, values[name] ?? ''));
}

/** Removes the mark of animation from a hash; returns any other value unchanged. */
function unmark(name: string, value: string): string {
  return name.endsWith('_hash') ? value.replace(/^a_/, '') : value;
}

/**
 * Parses the key of an original (contract §1), so that `originKeyOf` of the result is the key again; returns
 * `undefined` if the text does not have the form of a key.
 */
export function parseOriginKey(text: string): OriginKey | undefined {
  const segments = text.split('/');
  for (const template of originKeyTemplates) {
    if (template.segments.length !== segments.length) continue;
    const values: Record<string, string> = {};
    const fits = template.segments.every((part, position) => {
      const segment = segments[position] ?? '';
      if (part.kind === 'placeholder') {
        // Keys have no mark of animation: for a hash that looks marked, a path needs a second mark.
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
 * Returns the key that was meant where an animated hash was copied from a URL or from the API with its `a_`, which no
 * stored key has; `undefined` if the text is not a key or has no such mark.
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
 * Whether keys of originals can begin with this text: whole segments with a slash between them and none at the end, up
 * to a whole key.
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
