import type { QueryParameter } from '../../contract/media-query.ts';
import type { DescribedResource } from '../explorer-data.ts';
import { hasEffect, type RequestedPicture } from './effects.ts';

/** Copy of `signatureParameters` (contract §9), whose module needs Node. */
export const SIGNATURE_NAMES: readonly string[] = ['ex', 'is', 'hm', 'uc'];

/** Placeholder that is signed verbatim, including slashes (contract §8), and never encoded. */
const SIGNED_PART = 'target';

export interface MediaChoice extends RequestedPicture {
  /** Decoded values by placeholder of the template. */
  readonly values: Readonly<Record<string, string>>;
  readonly signature?: Readonly<Record<string, string>> | undefined;
}

/** Returns the placeholders of a template, except `ext`. */
export function placeholdersOf({ template }: DescribedResource): readonly string[] {
  return [...template.matchAll(/\{(\w+)\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'ext');
}

/** Returns the extension that clients usually request; empty if the path ends with a file name. */
export function usualExtensionOf({ extensions }: DescribedResource): string {
  return extensions.includes('webp') ? 'webp' : (extensions[0] ?? '');
}

export function widthParameterOf({ parameters }: DescribedResource): QueryParameter | undefined {
  return parameters.find(({ name }) => name === 'size' || name === 'width');
}

/** Returns the choice with another width and no height, if its kind has widths. */
export function withWidth(choice: MediaChoice, width: string): MediaChoice {
  const parameter = widthParameterOf(choice.resource);
  if (parameter === undefined) return choice;
  return { ...choice, parameters: { ...choice.parameters, height: '', [parameter.name]: width } };
}

export function formatPath({ resource, values, extension }: MediaChoice): string {
  return resource.template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = name === 'ext' ? extension : (values[name] ?? '');
    if (name !== SIGNED_PART) return encodeURIComponent(value);
    // Encodes only characters that would end the path.
    return value.replaceAll('?', '%3F').replaceAll('#', '%23');
  });
}

/** Formats path and query of a choice, without defaults and values without effect. */
export function formatTarget(choice: MediaChoice): string {
  const path = formatPath(choice);
  const query = new URLSearchParams();
  for (const { name, default: fallback } of choice.resource.parameters) {
    const value = choice.parameters[name] ?? '';
    const isNeeded = value !== '' && value !== fallback && hasEffect(choice, name, value);
    if (isNeeded) query.set(name, value);
  }
  for (const [name, value] of Object.entries(choice.signature ?? {})) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Parses a target; returns `undefined` if no resource has the path. */
export function parseChoice(
  target: string,
  resources: readonly DescribedResource[],
): MediaChoice | undefined {
  const mark = target.indexOf('?');
  const [path, query] = mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
  for (const resource of resources) {
    const found = patternOf(resource).exec(path)?.groups;
    if (found === undefined) continue;
    const { ext = '', ...encoded } = found;
    const values = Object.entries(encoded).map(
      ([name, value]) => [name, name === SIGNED_PART ? value : decode(value)] as const,
    );
    const received = [...new URLSearchParams(query)];
    const pick = (names: readonly string[]) =>
      Object.fromEntries(received.filter(([name]) => names.includes(name)));
    const signature = resource.name === 'attachment' ? pick(SIGNATURE_NAMES) : {};
    return {
      resource,
      values: Object.fromEntries(values),
      extension: decode(ext),
      parameters: pick(resource.parameters.map(({ name }) => name)),
      ...(Object.keys(signature).length > 0 && { signature }),
    };
  }
  return undefined;
}

/** Finds the target in user input: a URL on any host, a path, or an origin key, which gets the usual extension. */
export function findTarget(
  text: string,
  resources: readonly DescribedResource[],
): string | undefined {
  const local = text.replace(/\s/g, '').replace(/^https?:\/\/[^/?#]*/i, '');
  const [target = ''] = local.split('#', 1);
  const rooted = target.startsWith('/') ? target : `/${target}`;
  return [rooted, `${rooted}.webp`].find((each) => parseChoice(each, resources) !== undefined);
}

/** Returns a unique id of a choice's original; a hash with and without `a_` is the same original. */
export function identify({ resource, values }: Pick<MediaChoice, 'resource' | 'values'>): string {
  const parts = Object.entries(values).map(([part, value]) =>
    part.endsWith('_hash') ? value.replace(/^a_/, '') : value,
  );
  return JSON.stringify([resource.name, ...parts]);
}

/**
 * Formats a curl command that requests a URL and prints its response headers. The choice comes from the page's address and
 * is untrusted, so the command contains only a known extension and a URL without quotes, which shells escape differently.
 *
 * @param url with the target of the choice, as `formatTarget` encodes it
 */
export function formatCurl(url: string, choice: MediaChoice): string {
  const ending = endingOf(choice);
  const file = ending === undefined ? 'response' : `response.${ending}`;
  return `curl -sS -D - -o ${file} '${url.replaceAll("'", '%27')}'`;
}

export function endingOf({ resource, extension, parameters }: MediaChoice): string | undefined {
  const ending = extension === '' ? parameters.format : extension;
  return [...resource.extensions, ...wordsOf(resource, 'format')].find((each) => each === ending);
}

export function wordsOf({ parameters }: DescribedResource, wanted: string): readonly string[] {
  const form = parameters.find(({ name }) => name === wanted)?.form;
  return form?.kind === 'choice' ? form.values : [];
}

function patternOf({ template }: DescribedResource): RegExp {
  const pattern = template
    .replaceAll('.{ext}', '\\.(?<ext>[^/.]*)')
    .replace(`{${SIGNED_PART}}`, `(?<${SIGNED_PART}>.+)`)
    .replace(/\{(\w+)\}/g, '(?<$1>[^/]*)');
  return new RegExp(`^${pattern}$`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
