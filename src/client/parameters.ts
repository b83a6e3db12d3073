import type { QueryKind } from '../contract/media-query.ts';
import { type ParameterRow, parameters, queries } from './tables.ts';
import { quote } from './values.ts';

export type Options = Readonly<Record<string, unknown>>;

/**
 * Formats a query in the order of the contract, so that equal options share a URL and a cache entry. Appends validation
 * errors to `faults`.
 */
export function formatQuery(kind: QueryKind, options: Options, faults: string[]): string {
  const names = queries[kind];
  for (const name of Object.keys(options)) {
    if (options[name] !== undefined && !names.includes(name)) {
      faults.push(`${name} is unknown; expected one of ${names.join(', ')}.`);
    }
  }
  const present = names.filter((name) => options[name] !== undefined);
  for (const name of present) {
    const expected = findExpected(parameters[name], options[name]);
    if (expected) faults.push(`${name} is ${quote(options[name])}; expected ${expected}.`);
  }
  return present.map((name) => `${name}=${options[name]}`).join('&');
}

function findExpected(
  { values, min = 0, max = 0 }: ParameterRow = {},
  value: unknown,
): string | undefined {
  if (values) return values.includes(String(value)) ? undefined : `one of ${values.join(', ')}`;
  const fits = Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
  return fits ? undefined : `an integer from ${min} to ${max}`;
}
