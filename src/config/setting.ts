import { type MemorySetting, memoryDefaults } from './machine-limits.ts';
import type { SettingType } from './setting-types.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<Value = unknown> {
  readonly type: SettingType<Value>;
  readonly default?: Value | undefined;
  readonly description: string;
  /** In Markdown, appended to `default`: depends on the machine or on another variable. */
  readonly defaultText?: string;
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
  type: SettingType<Value>,
  fallback: NoInfer<Value>,
  description: string,
  more: Pick<Setting, 'mayBeEmpty'> = {},
): WithDefault<Value> {
  return { type, default: fallback, description, ...more };
}

/** Returns a setting whose default is lower on a machine with little memory. */
export function memorySetting(
  name: MemorySetting,
  type: SettingType<number>,
  description: string,
): WithDefault<number> {
  const defaultText = '[less](tuning.md#memory-bound) with less than 4.4 GiB of memory';
  return { type, default: memoryDefaults[name].full, description, defaultText };
}

/** Returns a setting without a fixed default. */
export function optional<Value>(
  type: SettingType<Value>,
  description: string,
  more: More = {},
): Setting<Value> {
  return { type, description, ...more };
}
