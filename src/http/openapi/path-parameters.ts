import { DEFAULT_AVATAR_COUNT } from '../../contract/limits.ts';
import { kindOfPathValue, type PathValueKind, pathValueForms } from '../../contract/path-value.ts';
import type { Parameter, Schema } from './model.ts';

const kinds = Object.keys(pathValueForms) as PathValueKind[];

/** The schemas that path parameters refer to. */
export const pathValueSchemas: Readonly<Record<string, Schema>> = Object.fromEntries(
  kinds.map((kind) => [schemaNameOf(kind), describeForm(kind)]),
);

/** The parameters of a path template, in their order. */
export function describePathParameters(
  template: string,
  extensions: readonly string[],
): readonly Parameter[] {
  const names = [...template.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? []);
  return names.map((name) => {
    const common = { name, in: 'path', required: true } as const;
    if (name === 'ext') {
      const schema = { type: 'string', enum: extensions };
      return { ...common, description: 'Format of the answer; jpg and jpeg are one.', schema };
    }
    const kind = kindOfPathValue(name);
    const schema = { $ref: `#/components/schemas/${schemaNameOf(kind)}` };
    return { ...common, description: describeValue(name, kind), schema };
  });
}

function describeValue(name: string, kind: PathValueKind): string {
  return name === 'index'
    ? `Those from 0 to ${DEFAULT_AVATAR_COUNT - 1} exist; any other is a 404.`
    : pathValueForms[kind].description;
}

function describeForm(kind: PathValueKind): Schema {
  const form = pathValueForms[kind];
  return {
    type: 'string',
    minLength: 1,
    pattern: form.pattern,
    ...('maxBytes' in form && { maxLength: form.maxBytes, 'x-max-bytes': form.maxBytes }),
    description: form.description,
    examples: [form.example],
  };
}

/** As in `Snowflake`. */
function schemaNameOf(kind: PathValueKind): string {
  return kind.slice(0, 1).toUpperCase() + kind.slice(1);
}
