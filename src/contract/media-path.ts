import type { RequestFault } from './errors.ts';
import type { Extension } from './image-formats.ts';
import { findPathValueFault } from './path-value.ts';
import {
  fillTemplate,
  pathTemplates,
  type ResourceName,
  resourceRows,
  type Template,
} from './resources.ts';

/** A path of the contract, taken apart; every value has passed its rule. */
export interface MediaPath {
  readonly resource: ResourceName;
  /** Value per placeholder of the template, decoded, as it stands in the URL (a hash with its `a_`). */
  readonly values: Readonly<Record<string, string>>;
  readonly extension: Extension | undefined;
}

/** Result of parsing a URL path. */
export type ParsedPath =
  | { readonly kind: 'valid'; readonly path: MediaPath }
  | {
      readonly kind: 'invalid';
      readonly resource: ResourceName;
      readonly faults: readonly RequestFault[];
    }
  | { readonly kind: 'no template' };

/** Literal segments of the templates: `/avatars/avatars/3.png` has no template, rather than a malformed id. */
const templateWords: ReadonlySet<string> = new Set(
  pathTemplates.flatMap(({ segments }) =>
    segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : [])),
  ),
);

/**
 * @param rawPath the path as it came, still percent-encoded, without query; each segment is decoded
 *   exactly once, so that `%252e` stays the text `%2e`
 * @returns the path; or the faults, one per placeholder at fault; or that no template has this shape
 */
export function parsePath(rawPath: string): ParsedPath {
  if (!rawPath.startsWith('/')) return { kind: 'no template' };
  const segments = rawPath.slice(1).split('/').map(decodeSegment);
  const template = pathTemplates.find((candidate) => hasShape(candidate, segments));
  if (template === undefined) return { kind: 'no template' };

  const { resource } = template;
  const { extensions: allowed = [] } = resourceRows[resource];
  const values: Record<string, string> = {};
  const faults: RequestFault[] = [];
  let extension: Extension | undefined;

  template.segments.forEach((part, position) => {
    if (part.kind === 'literal') return;
    const segment = segments[position];
    if (segment === undefined) {
      faults.push({ path: part.name, message: 'Expected valid percent-encoded UTF-8.' });
      return;
    }
    let value = segment;
    if (part.hasExtension) {
      const dot = segment.lastIndexOf('.');
      value = segment.slice(0, dot);
      extension = allowed.find((known) => known === segment.slice(dot + 1));
    }
    const message = findPathValueFault(part.name, value);
    if (message !== undefined) faults.push({ path: part.name, message });
    if (part.hasExtension && extension === undefined) {
      faults.push({ path: 'ext', message: `Expected one of ${allowed.join(', ')}.` });
    }
    values[part.name] = value;
  });

  return faults.length > 0
    ? { kind: 'invalid', resource, faults }
    : { kind: 'valid', path: { resource, values, extension } };
}

/** Formats the canonical path of what `parsePath` reads: `parsePath(formatPath(path))` is `path`. */
export function formatPath({ resource, values, extension }: MediaPath): string {
  return fillTemplate(resourceRows[resource].template, (name) =>
    name === 'ext' ? (extension ?? '') : encodeURIComponent(values[name] ?? ''),
  );
}

/**
 * Decodes a segment of a path once; returns `undefined` for a malformed escape, for bytes that are not UTF-8, and for a
 * raw character beyond ASCII: no URI has one (RFC 3986 §2), and a raw `é` that came as bytes one by one would name
 * another file than `%C3%A9` does.
 */
export function decodeSegment(segment: string): string | undefined {
  if (/[\u0080-\uffff]/.test(segment)) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function hasShape(template: Template, segments: readonly (string | undefined)[]): boolean {
  return (
    template.segments.length === segments.length &&
    template.segments.every((part, position) => {
      const segment = segments[position];
      if (part.kind === 'literal') return segment === part.text;
      if (segment === undefined || part.name === 'filename') return true;
      if (part.hasExtension) return segment.includes('.');
      return !templateWords.has(segment);
    })
  );
}
