import type { QueryKind } from '../contract/media-query.ts';
import { type ParameterRow, parameters, queries } from './tables.ts';
import { quote } from './values.ts';

/** Options of a URL; `undefined` omits a parameter. */
export type Options = Readonly<Record<string, unknown>>;

/**
 * Formats a query in the order of the contract, so that equal options have one URL and one cache entry. Appends what is
 * wrong with the options to `faults`.
 */
export function formatQuery(kind: QueryKind, options: Options, faults: string[]): string {
  const names = queries[kind];
  for (const name of Object.keys(options)) {
    if (options[name] !== undefined && !names.includes(name)) {
      faults.push(`${name} is unknown; expected one of ${names.join(', ')}.`);
    }
  }
  const given = names.filter((name) => options[name] !== undefined);
  for (const name of given) {
    const expected = findExpected(parameters[name], options[name]);
    if (expected) faults.push(`${name} is ${quote(options[name])}; expected ${expected}.`);
  }
  return given.map((name) => `${name}=${options[name]}`).join('&');
}

function findExpected(
  { values, min = 0, max = 0 }: ParameterRow = {},
  value: unknown,
): string | undefined {
  if (values) return values.includes(String(value)) ? undefined : `one of ${values.join(', ')}`;
  const fits = Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
  return fits ? undefined : `an integer from ${min} to ${max}`;
}
