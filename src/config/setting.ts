import { type MemorySetting, memoryDefaults } from './machine-limits.ts';
import type { Form } from './setting-forms.ts';

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One row of the table of variables. */
export interface Setting<Value = unknown> {
  readonly form: Form<Value>;
  /** Default value; `undefined` if there is none or it depends on other settings. */
  readonly default?: Value | undefined;
  /** Purpose of the variable, in Markdown. */
  readonly description: string;
  /** The default in Markdown, if it depends on the machine or on another variable; it follows a full one. */
  readonly defaultText?: string;
  /** Whether the value must never be shown. */
  readonly isSecret?: true;
  /** Whether an empty value is a value, and does not count as unset. */
  readonly mayBeEmpty?: true;
}

interface WithDefault<Value> extends Setting<Value> {
  readonly default: Value;
}

/** Values that the variables of a table were read as. */
export type ValuesOf<Table extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Table]: Table[Name] extends WithDefault<infer Value>
    ? Value
    : Table[Name] extends Setting<infer Value>
      ? Value | undefined
      : never;
};

type More = Pick<Setting, 'defaultText' | 'isSecret'>;

/** Returns the row of a variable with a default. */
export function setting<Value>(
  form: Form<Value>,
  fallback: NoInfer<Value>,
  description: string,
  more: Pick<Setting, 'mayBeEmpty'> = {},
): WithDefault<Value> {
  return { form, default: fallback, description, ...more };
}

/** Returns the row of a variable whose default, here the full one, is less on a machine with little memory. */
export function memorySetting(
  name: MemorySetting,
  form: Form<number>,
  description: string,
): WithDefault<number> {
  const defaultText = '[less](tuning.md#memory-bound) within 4.4 GiB of memory';
  return { form, default: memoryDefaults[name].full, description, defaultText };
}

/** Returns the row of a variable that may have no value. */
export function optional<Value>(
  form: Form<Value>,
  description: string,
  more: More = {},
): Setting<Value> {
  return { form, description, ...more };
}
