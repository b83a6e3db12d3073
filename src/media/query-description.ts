import { z } from 'zod';
import { querySchemas } from './media-query.ts';
import type { QueryKind } from './media-resource.ts';

/** A JSON Schema (draft 2020-12) of one value. */
export type ValueSchema = Readonly<Record<string, unknown>>;

/** A parameter as it is told to those who write clients. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  /** Of what its text stands for: 128, not "128". Its `default` is what holds without it. */
  readonly schema: ValueSchema;
}

/** The parameters of a query, from the very schemas that read it; all of them may be left out. */
export function describeQuery(kind: QueryKind): readonly QueryParameter[] {
  if (kind === 'none') return [];
  const shape: Readonly<Record<string, z.ZodType>> = querySchemas[kind].in.shape;
  return Object.entries(shape).map(([name, schema]) => {
    const { $schema: _, description = '', ...read } = z.toJSONSchema(schema, { io: 'input' });
    const fallback = schema.parse(undefined);
    const withDefault = fallback === undefined ? read : { ...read, default: fallback };
    return { name, description, schema: toValueSchema(withDefault) };
  });
}

/** In a query, all is text: an enumeration of numbers or truth values is one of their texts. */
function toValueSchema(schema: ValueSchema): ValueSchema {
  const { enum: texts, ...rest } = schema;
  if (!Array.isArray(texts)) return schema;
  if (texts.every((text) => /^\d+$/.test(text))) {
    return { ...rest, type: 'integer', enum: texts.map(Number) };
  }
  if (texts.every((text) => text === 'true' || text === 'false')) {
    return { ...rest, type: 'boolean' };
  }
  return schema;
}
