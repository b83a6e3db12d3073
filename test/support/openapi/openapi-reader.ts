import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type {
  Header,
  OpenapiDocument,
  Operation,
  Parameter,
  Reference,
  ResponseObject,
  Schema,
} from '../../../tools/documents/openapi/model.ts';

/** A response, with its headers by lower-case name. */
interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

const ajv = new Ajv2020({ strict: false });
ajv.addKeyword({
  keyword: 'x-max-bytes',
  type: 'string',
  validate: (max: number, text: string) => Buffer.byteLength(text) <= max,
});

/** The committed document; nothing here imports its generator. */
const document: OpenapiDocument = JSON.parse(readFileSync('docs/openapi.json', 'utf8'));
ajv.addSchema({ ...document, $id: 'http://document/' });
const validators = new Map<Schema, ValidateFunction>();

export function operationsOf(tag: string) {
  return Object.entries(document.paths).flatMap(([template, item]) =>
    (['get', 'head', 'options', 'post', 'put'] as const).flatMap((name) => {
      const operation = item[name];
      if (operation === undefined || !operation.tags.includes(tag)) return [];
      const method = name.toUpperCase() as Uppercase<typeof name>;
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
      return [{ method, template, operation, parameters: parameters.map(resolve<Parameter>) }];
    }),
  );
}

export type DocumentedOperation = ReturnType<typeof operationsOf>[number];

export function isValid(schema: Schema, value: unknown): boolean {
  return validatorOf(schema)(value);
}

/** Whether a text from a URL or a header is valid for a schema. */
export function isValidText(schema: Schema, text: string): boolean {
  return isValid(schema, toValue(resolve<Schema>(schema), text));
}

/** Lists the differences between a response and its documentation, one sentence each. */
export function findDeviations(
  request: { readonly method: string; readonly operation: Pick<Operation, 'responses'> },
  { status, headers, body }: Received,
): string[] {
  const documented = request.operation.responses[status];
  if (documented === undefined) return [`the status ${status} is not documented`];
  const response = resolve<ResponseObject>(documented);
  return [
    ...findHeaderDeviations(response, headers),
    ...findContentDeviations(response, request.method, String(headers['content-type'] ?? ''), body),
  ];
}

/** Like `findDeviations`, for an error: errors are documented once for all requests. */
export function findErrorDeviations(method: string, received: Received): string[] {
  const { status } = received;
  const responses = { [status]: { $ref: `#/components/responses/Error${status}` } };
  return findDeviations({ method, operation: { responses } }, received);
}

function findHeaderDeviations(response: ResponseObject, headers: Received['headers']): string[] {
  const deviations: string[] = [];
  // The first three belong to the connection; `content` documents the last one.
  const known = new Set(['connection', 'date', 'keep-alive', 'content-type']);
  for (const [name, reference] of Object.entries(response.headers)) {
    const { required = false, schema } = resolve<Header>(reference);
    known.add(name.toLowerCase());
    const value = headers[name.toLowerCase()];
    if (value === undefined) {
      if (required) deviations.push(`there is no ${name}`);
    } else if (!isValidText(schema, String(value))) {
      deviations.push(`${name} is "${value}"`);
    }
  }
  const others = Object.keys(headers).filter((name) => !known.has(name));
  return [...deviations, ...others.map((name) => `the header ${name} is not documented`)];
}

function findContentDeviations(
  { content }: ResponseObject,
  method: string,
  contentType: string,
  body: Buffer,
): string[] {
  if (content === undefined || method === 'HEAD') {
    if (body.length > 0) return [`there is a body of ${body.length} bytes`];
    if (content === undefined) return contentType === '' ? [] : ['there is a type'];
  }
  const type = contentType.split(';')[0] ?? '';
  const found = content?.[type];
  // `*/*` has no schema: its body is raw bytes.
  if (found === undefined && content?.['*/*'] !== undefined) return [];
  if (found === undefined) return [`the type "${type}" is not documented`];
  if (type !== 'application/json' || method === 'HEAD') return [];
  const validate = validatorOf(found.schema);
  if (validate(JSON.parse(body.toString()))) return [];
  return [`the body ${body.toString()} is not valid: ${ajv.errorsText(validate.errors)}`];
}

function validatorOf(schema: Schema): ValidateFunction {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const absolute = JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"http://document/#');
  const validator = ajv.compile(JSON.parse(absolute));
  validators.set(schema, validator);
  return validator;
}

function resolve<Target extends object>(value: Target | Reference): Target {
  if (!('$ref' in value) || typeof value.$ref !== 'string') return value as Target;
  const path = value.$ref.replace('#/', '').split('/');
  return path.reduce<unknown>(
    (at, name) => (at as Readonly<Record<string, unknown>>)[name],
    document,
  ) as Target;
}

/** Parses a number or a boolean in its canonical form; returns any other text unchanged. */
function toValue({ type }: Schema, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = type === 'integer' || type === 'number';
  return isNumber && /^(0|[1-9]\d*)$/.test(text) ? Number(text) : text;
}
