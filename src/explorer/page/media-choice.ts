import type { QueryParameter } from '../../contract/media-query.ts';
import type { DescribedResource } from '../explorer-data.ts';
import { type AskedPicture, hasEffect } from './effects.ts';

/**
 * Parameters that sign an attachment's URL (contract §9), for its path alone. As `signatureParameters` of the contract,
 * which browsers do not load.
 */
export const SIGNATURE_NAMES: readonly string[] = ['ex', 'is', 'hm', 'uc'];

/** The part of a path that is signed as it stands, slashes and all (contract §8); nothing of it is encoded. */
const SIGNED_PART = 'target';

/** What is asked for: the parts of a URL, right or wrong. */
export interface MediaChoice extends AskedPicture {
  /** Value per placeholder of the template, decoded. */
  readonly values: Readonly<Record<string, string>>;
  /** What signs the path, in the query; `undefined` where nothing does. */
  readonly signature?: Readonly<Record<string, string>> | undefined;
}

/** Names of the placeholders of a template, but for `ext`. */
export function placeholdersOf({ template }: DescribedResource): readonly string[] {
  return [...template.matchAll(/\{(\w+)\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'ext');
}

/** The format that clients take, as a path has it; empty where the path ends with a file name. */
export function usualExtensionOf({ extensions }: DescribedResource): string {
  return extensions.includes('webp') ? 'webp' : (extensions[0] ?? '');
}

/** What asks for a width, by whatever name a kind has for it. */
export function widthParameterOf({ parameters }: DescribedResource): QueryParameter | undefined {
  return parameters.find(({ name }) => name === 'size' || name === 'width');
}

/** A choice in another width, if it can have one; the height follows. */
export function withWidth(choice: MediaChoice, width: string): MediaChoice {
  const parameter = widthParameterOf(choice.resource);
  if (parameter === undefined) return choice;
  return { ...choice, parameters: { ...choice.parameters, height: '', [parameter.name]: width } };
}

/** Path of a choice. */
export function formatPath({ resource, values, extension }: MediaChoice): string {
  return resource.template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = name === 'ext' ? extension : (values[name] ?? '');
    return name === SIGNED_PART ? encodeMarks(value) : encodeURIComponent(value);
  });
}

/** Path and query of a choice; what has its default value, or no effect, is left out. */
export function formatTarget(choice: MediaChoice): string {
  const path = formatPath(choice);
  const query = new URLSearchParams();
  for (const { name, default: fallback } of choice.resource.parameters) {
    const value = choice.parameters[name] ?? '';
    const isOfUse = value !== '' && value !== fallback && hasEffect(choice, name, value);
    if (isOfUse) query.set(name, value);
  }
  for (const [name, value] of Object.entries(choice.signature ?? {})) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Reads what `formatTarget` writes; `undefined` for the path of no resource. */
export function readTarget(
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
    const given = [...new URLSearchParams(query)];
    const pick = (names: readonly string[]) =>
      Object.fromEntries(given.filter(([name]) => names.includes(name)));
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

/**
 * Finds the target in what a person puts: a URL on whatever host, a path, or the key of an original, to which the
 * format that clients take is added. `undefined` where it is none of these.
 */
export function findTarget(
  text: string,
  resources: readonly DescribedResource[],
): string | undefined {
  const local = text.replace(/\s/g, '').replace(/^https?:\/\/[^/?#]*/i, '');
  const [target = ''] = local.split('#', 1);
  const rooted = target.startsWith('/') ? target : `/${target}`;
  return [rooted, `${rooted}.webp`].find((each) => readTarget(each, resources) !== undefined);
}

/** What a choice is of, by a name that is its own; a marked hash and an unmarked one are of the same original. */
export function identify({ resource, values }: Pick<MediaChoice, 'resource' | 'values'>): string {
  const parts = Object.entries(values).map(([part, value]) =>
    part.endsWith('_hash') ? value.replace(/^a_/, '') : value,
  );
  return JSON.stringify([resource.name, ...parts]);
}

/**
 * A line for a shell that asks for a URL and shows the head of the response. A choice is not to be trusted: it comes
 * from the address of the page, which anybody may have written, and the line is pasted. So nothing of it is a word of
 * its own, and there is no quote in the URL: shells differ in how one is written within quotes.
 *
 * @param url with the target of the choice, as `formatTarget` encodes it
 */
export function formatCurl(url: string, choice: MediaChoice): string {
  const ending = endingOf(choice);
  const file = ending === undefined ? 'response' : `response.${ending}`;
  return `curl -sS -D - -o ${file} '${url.replaceAll("'", '%27')}'`;
}

/** The ending of what comes back, if the contract knows it. */
export function endingOf({ resource, extension, parameters }: MediaChoice): string | undefined {
  const ending = extension === '' ? parameters.format : extension;
  return [...resource.extensions, ...wordsOf(resource, 'format')].find((each) => each === ending);
}

/** The words that a parameter of a kind may be; none where there is no such choice. */
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

/** What would end the path. */
function encodeMarks(text: string): string {
  return text.replaceAll('?', '%3F').replaceAll('#', '%23');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
