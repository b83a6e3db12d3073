import {
  type QueryKind,
  type QueryParameter,
  queryParameters,
} from '../../src/contract/media-query.ts';
import type { Parameter, Schema } from './model.ts';

/** The parameters of a kind of query, as OpenAPI has them. */
export function describeQueryParameters(kind: QueryKind): readonly Parameter[] {
  return queryParameters[kind].map((parameter) => {
    const { name, description } = parameter;
    return { name, in: 'query', description, schema: schemaOf(parameter) };
  });
}

/**
 * A schema of what the text of a parameter stands for: 128, not "128". In a query, all is text; a choice of
 * numbers or truth values is one of their texts.
 */
function schemaOf({ form, default: fallback }: QueryParameter): Schema {
  const typed = <Value>(type: string, read: (text: string) => Value, rest: Schema): Schema => ({
    type,
    ...(fallback !== undefined && { default: read(fallback) }),
    ...rest,
  });
  if (form.kind === 'integer') {
    return typed('integer', Number, { minimum: form.min, maximum: form.max });
  }
  const { values } = form;
  if (values.every((text) => /^\d+$/.test(text))) {
    return typed('integer', Number, { enum: values.map(Number) });
  }
  if (values.every((text) => text === 'true' || text === 'false')) {
    return typed('boolean', (text) => text === 'true', {});
  }
  return typed('string', String, { enum: values });
}
