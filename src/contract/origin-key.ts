import type { MediaPath } from './media-path.ts';
import { parseTemplate, type Template, type TemplateSegment } from './path-template.ts';
import { findPathValueFault } from './path-value.ts';
import { type ResourceName, resourceRows } from './resources.ts';

/** An original's key, taken apart; every value has passed its rule. */
export type OriginKey = Pick<MediaPath, 'resource' | 'values'>;

const resources = Object.keys(resourceRows) as ResourceName[];

/** The forms of the keys of originals. */
const originKeyTemplates: readonly Template[] = resources.flatMap((resource) => {
  const { originKey } = resourceRows[resource];
  return originKey === undefined ? [] : [{ resource, segments: parseTemplate(`/${originKey}`) }];
});

/**
 * The key of the original in the origin (spec §1), built from the parsed values, never from the raw
 * path; `undefined` for what is shipped with the service.
 */
export function originKeyOf({ resource, values }: OriginKey): string | undefined {
  const { originKey } = resourceRows[resource];
  if (originKey === undefined) return undefined;
  return originKey.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    return name.endsWith('_hash') ? value.replace(/^a_/, '') : value;
  });
}

/**
 * Reads the key of an original (spec §1): `originKeyOf` of what it gives is the key again. `undefined` for a
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

/** Whether a text has the form of an original's key (spec §1). */
export function isOriginKey(text: string): boolean {
  return parseOriginKey(text) !== undefined;
}

/**
 * The key that somebody means who copies an animated hash from a URL, or from the API, with its `a_`, which
 * no stored key has; `undefined` for a text that is no key, or has none.
 */
export function unmarkedKeyOf(text: string): string | undefined {
  const key = parseOriginKey(text);
  if (key === undefined) return undefined;
  const values = Object.fromEntries(
    Object.entries(key.values).map(([name, value]) => [
      name,
      name.endsWith('_hash') ? value.replace(/^a_/, '') : value,
    ]),
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
