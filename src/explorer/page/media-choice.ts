import type { DescribedResource } from '../explorer-data.ts';

/** What is asked for: the parts of a URL, right or wrong. */
export interface MediaChoice {
  readonly resource: DescribedResource;
  /** Value per placeholder of the template, decoded. */
  readonly values: Readonly<Record<string, string>>;
  /** Empty where the path ends with a file name. */
  readonly extension: string;
  /** What is in the query; what is not there is left to the service. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Names of the placeholders of a template, but for `ext`. */
export function placeholdersOf({ template }: DescribedResource): readonly string[] {
  return [...template.matchAll(/\{(\w+)\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'ext');
}

/** Path and query of a choice; a parameter with its default value is left out. */
export function formatTarget({ resource, values, extension, parameters }: MediaChoice): string {
  const path = resource.template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === 'ext' ? extension : (values[name] ?? '')),
  );
  const query = new URLSearchParams();
  for (const { name, default: fallback } of resource.parameters) {
    const value = parameters[name] ?? '';
    if (value !== '' && value !== fallback) query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Reads what `formatTarget` writes; `undefined` for the path of no resource. */
export function readTarget(
  target: string,
  resources: readonly DescribedResource[],
): MediaChoice | undefined {
  const [path = '', query = ''] = target.split('?', 2);
  for (const resource of resources) {
    const found = patternOf(resource).exec(path)?.groups;
    if (found === undefined) continue;
    const { ext = '', ...encoded } = found;
    const values = Object.entries(encoded).map(([name, value]) => [name, decode(value)] as const);
    const names = resource.parameters.map(({ name }) => name);
    const given = [...new URLSearchParams(query)].filter(([name]) => names.includes(name));
    return {
      resource,
      values: Object.fromEntries(values),
      extension: decode(ext),
      parameters: Object.fromEntries(given),
    };
  }
  return undefined;
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
function endingOf({ resource, extension, parameters }: MediaChoice): string | undefined {
  const known = resource.parameters.flatMap(({ name, form }) =>
    name === 'format' && form.kind === 'choice' ? form.values : [],
  );
  const ending = extension === '' ? parameters.format : extension;
  return [...resource.extensions, ...known].find((each) => each === ending);
}

function patternOf({ template }: DescribedResource): RegExp {
  const pattern = template
    .replaceAll('.{ext}', '\\.(?<ext>[^/.]*)')
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
