import { type MemorySetting, memoryDefaults } from './machine-limits.ts';
import type { Form } from './setting-forms.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<Value = unknown> {
  readonly form: Form<Value>;
  /** Default value; omitted if it depends on other settings. */
  readonly default?: Value | undefined;
  readonly description: string;
  /** Default that depends on the machine or on another variable, in Markdown; appended to `default`. */
  readonly defaultText?: string;
  /** Whether the value is masked everywhere. */
  readonly isSecret?: true;
  /** Whether an empty value does not count as unset. */
  readonly mayBeEmpty?: true;
}

interface WithDefault<Value> extends Setting<Value> {
  readonly default: Value;
}

export type ValuesOf<Table extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Table]: Table[Name] extends WithDefault<infer Value>
    ? Value
    : Table[Name] extends Setting<infer Value>
      ? Value | undefined
      : never;
};

type More = Pick<Setting, 'defaultText' | 'isSecret'>;

export function setting<Value>(
  form: Form<Value>,
  fallback: NoInfer<Value>,
  description: string,
  more: Pick<Setting, 'mayBeEmpty'> = {},
): WithDefault<Value> {
  return { form, default: fallback, description, ...more };
}

/** Returns the row of a variable whose full default is lower on a machine with little memory. */
export function memorySetting(
  name: MemorySetting,
  form: Form<number>,
  description: string,
): WithDefault<number> {
  const defaultText = '[less](tuning.md#memory-bound) with less than 4.4 GiB of memory';
  return { form, default: memoryDefaults[name].full, description, defaultText };
}

/** Returns the row of a variable without a fixed default. */
export function optional<Value>(
  form: Form<Value>,
  description: string,
  more: More = {},
): Setting<Value> {
  return { form, description, ...more };
}
