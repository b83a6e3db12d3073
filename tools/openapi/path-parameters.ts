import {
  kindOfPathValue,
  type PathValueKind,
  pathValueForms,
} from '../../src/contract/path-value.ts';
import { DEFAULT_AVATAR_COUNT } from '../../src/contract/resources.ts';
import type { Parameter, Schema } from './model.ts';

const kinds = Object.keys(pathValueForms) as PathValueKind[];

/** Values that lead to one of the sample originals, whatever the resource; a test asks for each. */
const examples: Readonly<Record<PathValueKind, string>> = {
  snowflake: '1',
  hash: 'ab12',
  filename: 'country-lane.jpg',
};

const defaultAvatarIndexes = Array.from({ length: DEFAULT_AVATAR_COUNT }, (_, index) => index);

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
  return names.map((name) => describePathParameter(name, extensions));
}

function describePathParameter(name: string, extensions: readonly string[]): Parameter {
  const common = { name, in: 'path', required: true } as const;
  if (name === 'ext') {
    const [example] = extensions;
    return {
      ...common,
      description: 'Format of the response; jpg and jpeg are one.',
      schema: { type: 'string', enum: extensions },
      ...(example !== undefined && { example }),
    };
  }
  if (name === 'index') {
    return {
      ...common,
      description: 'Which of the default avatars; any other number is a 404.',
      schema: { type: 'integer', enum: defaultAvatarIndexes },
      example: 0,
    };
  }
  const kind = kindOfPathValue(name);
  return {
    ...common,
    description: pathValueForms[kind].description,
    schema: { $ref: `#/components/schemas/${schemaNameOf(kind)}` },
    example: examples[kind],
  };
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
