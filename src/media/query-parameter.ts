import { z } from 'zod';
import { querySchemas } from './media-query.ts';
import type { QueryKind } from './media-resource.ts';

/** What a parameter may be: one of a few words, or an integer within bounds, both included. */
export type ParameterForm =
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number };

/** A parameter of a query, for those who build URLs. */
export interface QueryParameter {
  readonly name: string;
  readonly form: ParameterForm;
  /** What leaving it out comes to; absent where that is a choice of its own. */
  readonly default?: string;
}

const formSchema = z.union([
  z.object({ enum: z.array(z.string()) }),
  z.object({ minimum: z.int(), maximum: z.int() }),
]);

/** The parameters of a kind of query, read from the schema that reads them from requests. */
export function describeQuery(kind: QueryKind): readonly QueryParameter[] {
  if (kind === 'none') return [];
  const schema = querySchemas[kind].in;
  const defaults: Readonly<Record<string, unknown>> = schema.parse({});
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input' });
  return Object.entries(properties).map(([name, property]) => {
    const form = formSchema.parse(property);
    const fallback = defaults[name];
    return {
      name,
      form:
        'enum' in form
          ? { kind: 'choice', values: form.enum }
          : { kind: 'integer', min: form.minimum, max: form.maximum },
      ...(fallback !== undefined && { default: String(fallback) }),
    };
  });
}
