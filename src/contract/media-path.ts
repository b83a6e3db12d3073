import type { RequestFault } from './errors.ts';
import type { Extension } from './image-formats.ts';
import {
  contractResources,
  fillTemplate,
  findPathValueFault,
  kindOfPathValue,
  type ResourceName,
  type Resources,
  resourceRows,
  type Template,
  type TemplateSegment,
} from './resources.ts';

export interface MediaPath {
  readonly resource: ResourceName;
  /** Decoded values by placeholder; hashes keep their `a_`, and `ext` is only present for files. */
  readonly values: Readonly<Record<string, string>>;
  readonly extension: Extension | undefined;
}

export type ParsedPath =
  | { readonly kind: 'valid'; readonly path: MediaPath }
  | {
      readonly kind: 'invalid';
      readonly resource: ResourceName;
      readonly faults: readonly RequestFault[];
    }
  | { readonly kind: 'no template' };

/**
 * Parses a path. Decodes each segment exactly once: `%252e` is the text `%2e`.
 *
 * @param rawPath percent-encoded, without query
 * @returns the path, a validation error for each invalid placeholder, or that no template matches
 */
export function parsePath(rawPath: string, resources = contractResources): ParsedPath {
  if (!rawPath.startsWith('/')) return { kind: 'no template' };
  const segments = rawPath.slice(1).split('/').map(decodeSegment);
  if (resources.isLenient && segments[0] === ATTACHMENTS && segments.length > 1) {
    return parseAttachmentPath(segments.slice(1));
  }
  const template = resources.pathTemplates.find((it) => hasShape(it, segments, resources));
  if (template === undefined) return { kind: 'no template' };

  const { resource } = template;
  const { extensions = [], fileExtensions = [] } = resourceRows[resource];
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
      const [stem, ext] = splitExtension(segment);
      value = stem;
      extension = extensions.find((each) => each === ext);
      if (fileExtensions.includes(ext)) values.ext = ext;
    }
    const message = findPathValueFault(part.name, value);
    if (message !== undefined) faults.push({ path: part.name, message });
    if (part.hasExtension && (extension ?? values.ext) === undefined) {
      const allowed = [...extensions, ...fileExtensions];
      faults.push({ path: 'ext', message: `Expected one of ${allowed.join(', ')}.` });
    }
    values[part.name] = value;
  });

  return faults.length > 0
    ? { kind: 'invalid', resource, faults }
    : { kind: 'valid', path: { resource, values, extension } };
}

const ATTACHMENTS = 'attachments';

/** Maximum length of a key in bytes of UTF-8, set by S3. */
const MAX_KEY_BYTES = 1_024;

/** Parses the path of an attachment at any depth (contract §14), where `%2F` is a slash. */
function parseAttachmentPath(segments: readonly (string | undefined)[]): ParsedPath {
  const isDecoded = segments.every((segment) => segment !== undefined);
  const key = [ATTACHMENTS, ...segments].join('/');
  const message = isDecoded ? findKeyFault(key) : 'Expected valid percent-encoded UTF-8.';
  const resource = 'attachment';
  if (message !== undefined) {
    return { kind: 'invalid', resource, faults: [{ path: 'attachment_path', message }] };
  }
  return {
    kind: 'valid',
    path: { resource, values: valuesOfAttachment(key), extension: undefined },
  };
}

function valuesOfAttachment(key: string): MediaPath['values'] {
  const filename = key.slice(key.lastIndexOf('/') + 1);
  return { attachment_path: key.slice(ATTACHMENTS.length + 1), filename };
}

/** Returns the error in a key of any depth, as a sentence; `undefined` if the key is valid. */
export function findKeyFault(key: string): string | undefined {
  if (new TextEncoder().encode(key).length > MAX_KEY_BYTES) {
    return `Expected at most ${MAX_KEY_BYTES} bytes of UTF-8.`;
  }
  if (/[\\\p{Cc}\p{Cs}]/u.test(key)) return 'Expected no backslash or control character.';
  const isPath = key.split('/').every((segment) => !['', '.', '..'].includes(segment));
  return isPath ? undefined : 'Expected segments that are neither empty nor . or ..';
}

/** Formats a canonical path; reverses `parsePath`. */
export function formatPath({ resource, values, extension }: MediaPath): string {
  return fillTemplate(resourceRows[resource].template, (name) =>
    name === 'ext' && extension !== undefined ? extension : encodeURIComponent(values[name] ?? ''),
  );
}

export function splitExtension(segment: string): [stem: string, extension: string] {
  const dot = segment.lastIndexOf('.');
  return [segment.slice(0, dot), segment.slice(dot + 1)];
}

/**
 * Decodes a path segment once; returns `undefined` for malformed escapes, invalid UTF-8, and characters beyond ASCII, which
 * URIs cannot contain (RFC 3986 §2): a raw `é` would name another file than `%C3%A9`.
 */
export function decodeSegment(segment: string): string | undefined {
  return /[\u0080-\uffff]/.test(segment) ? undefined : decodeOnce(segment);
}

/** Decodes a text once; returns `undefined` for malformed escapes or invalid UTF-8. */
export function decodeOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function hasShape(
  template: Template,
  segments: readonly (string | undefined)[],
  { reservedSegments }: Resources,
): boolean {
  return (
    template.segments.length === segments.length &&
    template.segments.every((part, position) => {
      const segment = segments[position];
      if (part.kind === 'literal') return segment === part.text;
      if (segment === undefined) return true;
      if (part.hasExtension) return segment.includes('.');
      return (
        ['filename', 'name'].includes(kindOfPathValue(part.name)) || !reservedSegments.has(segment)
      );
    })
  );
}

export type OriginKey = Pick<MediaPath, 'resource' | 'values'>;

/** Returns the key of an original (contract §1); `undefined` for resources without stored originals. */
export function originKeyOf({ resource, values }: OriginKey): string | undefined {
  const { originKey } = resourceRows[resource];
  if (originKey === undefined) return undefined;
  if (values.attachment_path !== undefined) return `${ATTACHMENTS}/${values.attachment_path}`;
  return fillTemplate(originKey, (name) => stripAnimatedPrefix(name, values[name] ?? ''));
}

function stripAnimatedPrefix(name: string, value: string): string {
  return name.endsWith('_hash') ? value.replace(/^a_/, '') : value;
}

/** Parses the key of an original (contract §1), as `originKeyOf` formats it. Returns `undefined` for other texts. */
export function parseOriginKey(text: string, resources = contractResources): OriginKey | undefined {
  const segments = text.split('/');
  if (resources.isLenient && segments[0] === ATTACHMENTS && segments.length > 1) {
    const values = valuesOfAttachment(text);
    return findKeyFault(text) === undefined ? { resource: 'attachment', values } : undefined;
  }
  for (const template of resources.originKeyTemplates) {
    if (template.segments.length !== segments.length) continue;
    const values: Record<string, string> = {};
    const fits = template.segments.every((part, position) => {
      const segment = segments[position] ?? '';
      if (part.kind === 'placeholder' && part.hasExtension) {
        [values[part.name], values.ext] = splitExtension(segment);
      } else if (part.kind === 'placeholder') {
        // Keys omit the prefix `a_` of a hash, so a hash in a key that begins with `a_` has it twice in a path.
        const isMarked = part.name.endsWith('_hash') && segment.startsWith('a_');
        values[part.name] = isMarked ? `a_${segment}` : segment;
      }
      return fitsSegment(part, segment, template);
    });
    if (fits) return { resource: template.resource, values };
  }
  return undefined;
}

export function isOriginKey(text: string, resources?: Resources): boolean {
  return parseOriginKey(text, resources) !== undefined;
}

/** Returns a key without the `a_` of a hash copied from a URL or the API; `undefined` if there is nothing to remove. */
export function unmarkedKeyOf(text: string, resources?: Resources): string | undefined {
  const key = parseOriginKey(text, resources);
  if (key === undefined) return undefined;
  const values = Object.fromEntries(
    Object.entries(key.values).map(([name, value]) => [name, stripAnimatedPrefix(name, value)]),
  );
  const unmarked = originKeyOf({ ...key, values });
  return unmarked === text ? undefined : unmarked;
}

/** Whether keys of originals can begin with these complete segments, given without a trailing slash. */
export function canBeginOriginKey(text: string, resources = contractResources): boolean {
  if (parseOriginKey(text, resources) !== undefined) return true;
  const segments = text.split('/');
  return resources.originKeyTemplates.some(
    (template) =>
      segments.length <= template.segments.length &&
      segments.every((segment, position) => {
        const part = template.segments[position];
        return part !== undefined && fitsSegment(part, segment, template);
      }),
  );
}

function fitsSegment(part: TemplateSegment, segment: string, { resource }: Template): boolean {
  if (part.kind === 'literal') return part.text === segment;
  if (!part.hasExtension) return findPathValueFault(part.name, segment) === undefined;
  const [stem, extension] = splitExtension(segment);
  const isFile = resourceRows[resource].fileExtensions?.includes(extension) === true;
  return isFile && findPathValueFault(part.name, stem) === undefined;
}
