import { queryParameters } from '../contract/media-query.ts';
import { parseTarget } from '../contract/media-request.ts';
import { type ResourceName, resourceNames, resourceRows } from '../contract/resources.ts';
import { resultKey } from '../contract/result-key.ts';
import type { ContractTables, DescribedResource } from './explorer-data.ts';

/** Values of placeholders that are neither ids nor hashes. */
const EXAMPLES: Readonly<Record<string, string>> = {
  filename: 'a.gif',
};

/** Accepts the example of external media, whose path has no valid signature. */
const parseOptions = { readExternal: () => 'https://a.example/a.gif' };

export function describeContract(): ContractTables {
  return {
    resources: resourceNames.filter((name) => !resourceRows[name].isSigned).map(describeResource),
    external: resourceNames.filter((name) => resourceRows[name].isSigned).map(describeResource),
  };
}

export function describeResource(name: ResourceName): DescribedResource {
  const { template, extensions = [], query } = resourceRows[name];
  const parameters = queryParameters[query];
  const path = template.replace(/\{(\w+)\}/g, (part, placeholder: string) => {
    if (placeholder === 'ext') return part;
    return EXAMPLES[placeholder] ?? (placeholder.endsWith('_hash') ? 'ab12' : '1');
  });
  const formats = parameters.flatMap(({ name: parameter, form }) =>
    parameter === 'format' && form.kind === 'choice' ? form.values : [],
  );
  const requests: readonly (readonly [format: string, target: string])[] =
    extensions.length > 0
      ? extensions.map((extension) => [extension, path.replace('{ext}', extension)])
      : [
          ['unchanged', path],
          ['', `${path}?width=64`],
          ...formats.map((format) => [format, `${path}?format=${format}`] as const),
        ];
  const idle = requests.map(([format, target]) => [format, findIdle(target, parameters)] as const);
  return { name, template, extensions, parameters, idle: Object.fromEntries(idle) };
}

/** Finds values without effect (contract §2): the result key is the same as with the default. */
function findIdle(target: string, parameters: DescribedResource['parameters']): readonly string[] {
  const keyOf = (query: string): string => {
    const parsed = parseTarget(
      `${target}${target.includes('?') ? '&' : '?'}${query}`,
      parseOptions,
    );
    if (parsed.kind !== 'media') throw new Error(`The example ${target} is not media.`);
    return resultKey(parsed.request);
  };
  return parameters.flatMap(({ name, form, default: fallback }) => {
    if (form.kind !== 'choice' || fallback === undefined) return [];
    const same = form.values.filter(
      (value) => keyOf(`${name}=${value}`) === keyOf(`${name}=${fallback}`),
    );
    // The default can be chosen, unless no value has an effect.
    const hasNoEffect = same.length === form.values.length;
    return same
      .filter((value) => hasNoEffect || value !== fallback)
      .map((value) => `${name}=${value}`);
  });
}
