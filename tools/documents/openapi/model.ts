/** The part of OpenAPI 3.1 (spec.openapis.org/oas/v3.1.0) that the document uses. Members with `x-` are ours. */

/** JSON Schema, draft 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

/** A pointer into `components`. */
export interface Reference {
  readonly $ref: string;
}

export interface Header {
  readonly description: string;
  /** Whether every response that refers to the header has it. */
  readonly required?: boolean;
  readonly schema: Schema;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
  /** A value with which the operation succeeds on the sample originals. */
  readonly example?: string | number;
}

export interface MediaType {
  readonly schema: Schema;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly servers?: readonly Server[];
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** Empty: no authentication. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  /** By status. */
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>;
}

export interface Server {
  readonly url: string;
  readonly description: string;
  readonly variables: Readonly<Record<string, { readonly default: string }>>;
}

export interface PathItem {
  readonly summary?: string;
  readonly parameters?: readonly Parameter[];
  /** Key of the original in the storage. */
  readonly 'x-origin-key'?: string;
  readonly get?: Operation;
  readonly head?: Operation;
  readonly options?: Operation;
  readonly post?: Operation;
  readonly delete?: Operation;
  readonly put?: Operation;
}

export interface OpenapiDocument {
  readonly openapi: string;
  readonly info: Readonly<Record<string, unknown>>;
  readonly servers: readonly Server[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly headers: Readonly<Record<string, Header>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, Schema>>;
  };
}

/** Returns a text with a capital first letter. */
export function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Returns an object with a property for each name or status. */
export function byName<Name extends string | number, Value>(
  names: readonly Name[],
  describe: (name: Name) => Value,
): Readonly<Record<string, Value>> {
  return Object.fromEntries(names.map((name) => [String(name), describe(name)]));
}
