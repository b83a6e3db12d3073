import { z } from 'zod';
import { querySchemas } from './media-query.ts';
import type { QueryKind } from './resources.ts';

/** What a parameter may be: one of a few words, or an integer within bounds, both included. */
export type ParameterForm =
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number };

/** A parameter of a query, for those who build URLs and those who write clients; all may be left out. */
export interface QueryParameter {
  readonly name: string;
  /** What it is for, in a sentence or two. */
  readonly description: string;
  readonly form: ParameterForm;
  /** What leaving it out comes to, as it would be written; absent where that is a choice of its own. */
  readonly default?: string;
}

const propertySchema = z.union([
  z.object({ description: z.string(), enum: z.array(z.string()) }),
  z.object({ description: z.string(), minimum: z.int(), maximum: z.int() }),
]);

/** The parameters of a kind of query, read from the schema that reads them from requests. */
export function describeQuery(kind: QueryKind): readonly QueryParameter[] {
  if (kind === 'none') return [];
  const shape: Readonly<Record<string, z.ZodType>> = querySchemas[kind].in.shape;
  return Object.entries(shape).map(([name, schema]) => {
    const property = propertySchema.parse(z.toJSONSchema(schema, { io: 'input' }));
    const fallback = schema.parse(undefined);
    return {
      name,
      description: property.description,
      form:
        'enum' in property
          ? { kind: 'choice', values: property.enum }
          : { kind: 'integer', min: property.minimum, max: property.maximum },
      ...(fallback !== undefined && { default: String(fallback) }),
    };
  });
}
