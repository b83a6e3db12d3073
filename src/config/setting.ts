import type { Form } from './setting-forms.ts';

/** Environment variables, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable: a row of the table. */
export interface Setting<Value = unknown> {
  readonly form: Form<Value>;
  /** What it is where it is not set; `undefined` where that is nothing, or depends on something else. */
  readonly default?: Value | undefined;
  /** What it is for, in Markdown. */
  readonly description: string;
  /** The default in Markdown, where it depends on the machine or on another variable. */
  readonly defaultText?: string;
  /** Its value is never shown. */
  readonly isSecret?: true;
}

/** A variable that always has a value. */
interface WithDefault<Value> extends Setting<Value> {
  readonly default: Value;
}

/** What the variables of a table were read as. */
export type ValuesOf<Table extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Table]: Table[Name] extends WithDefault<infer Value>
    ? Value
    : Table[Name] extends Setting<infer Value>
      ? Value | undefined
      : never;
};

type More = Pick<Setting, 'defaultText' | 'isSecret'>;

/** A row of a variable that has a default of its own. */
export function setting<Value>(
  form: Form<Value>,
  fallback: NoInfer<Value>,
  description: string,
): WithDefault<Value> {
  return { form, default: fallback, description };
}

/** A row of a variable that may be without a value. */
export function optional<Value>(
  form: Form<Value>,
  description: string,
  more: More = {},
): Setting<Value> {
  return { form, description, ...more };
}
