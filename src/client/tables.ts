/**
 * Columns of the contract's tables that the library needs. The build replaces this module by its values, since the other
 * columns would double the size of the library.
 */

import { type QueryKind, queryParameters } from '../contract/media-query.ts';
import {
  DEFAULT_AVATAR_COUNT,
  kindOfPathValue,
  type PathValueKind,
  pathValueSyntaxes,
  type ResourceName,
  resourceRows,
} from '../contract/resources.ts';
import { type Kind, shortNames } from './kinds.ts';

export type ValueKind = PathValueKind;

export interface KindRow {
  readonly method: string;
  /** Path without extension, with the kind of each value: `/avatars/{user_id:snowflake}/{avatar_hash:hash}`. */
  readonly path: string;
  /** Extensions of the path; omit for those of all formats, empty for a path without extension. */
  readonly formats?: readonly string[] | undefined;
  readonly query: QueryKind;
}

/** Values of a parameter: a list, or the integers from `min` to `max`. */
export interface ParameterRow {
  readonly values?: readonly string[];
  readonly min?: number;
  readonly max?: number;
}

// The platform's API signs URLs of external media; default avatars have a separate method.
const names = (Object.keys(resourceRows) as ResourceName[]).filter(
  (name): name is Kind => !resourceRows[name].isSigned && resourceRows[name].query !== 'none',
);
const methods: Partial<Record<Kind, string>> = shortNames;
const parameterRows = Object.values(queryParameters).flat();
const allFormats = parameterRows.find(({ name }) => name === 'format')?.form;

export const kinds: Readonly<Record<string, KindRow>> = Object.fromEntries(
  names.map((name) => [name, rowOf(name)]),
);

export const defaultAvatars: number = DEFAULT_AVATAR_COUNT;

/** Names of parameters by kind of query, in the order of the contract. */
export const queries: Readonly<Record<QueryKind, readonly string[]>> = mapValues(
  queryParameters,
  (each) => each.map(({ name }) => name),
);

/** Parameters by name; their values do not depend on the kind of query. */
export const parameters: Readonly<Record<string, ParameterRow>> = Object.fromEntries(
  parameterRows.map(({ name, form: { kind: _, ...row } }) => [name, row]),
);

export const valueSyntaxes: Readonly<
  Record<ValueKind, readonly [pattern: string, description: string, maxBytes?: number]>
> = mapValues(pathValueSyntaxes, ({ pattern, description, ...form }) =>
  'maxBytes' in form ? [pattern, description, form.maxBytes] : [pattern, description],
);

function rowOf(name: Kind): KindRow {
  const { template, extensions, fileExtensions, query } = resourceRows[name];
  const formats: readonly string[] = extensions ?? fileExtensions ?? [];
  const isAny = allFormats?.kind === 'choice' && String(allFormats.values) === String(formats);
  return {
    method: methods[name] ?? name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase()),
    path: template
      .replace('.{ext}', '')
      .replace(/\{(\w+)\}/g, (_, value: string) => `{${value}:${kindOfPathValue(value)}}`),
    ...(!isAny && { formats }),
    query,
  };
}

function mapValues<Key extends string, Value, Result>(
  record: Readonly<Record<Key, Value>>,
  of: (value: Value) => Result,
): Record<Key, Result> {
  const entries = Object.entries<Value>(record).map(([key, value]) => [key, of(value)]);
  return Object.fromEntries(entries) as Record<Key, Result>;
}
