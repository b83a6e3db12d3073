import fc from 'fast-check';
import type { Parameter } from '../../../tools/openapi/model.ts';
import type { DocumentedOperation, OpenapiReader } from './openapi-reader.ts';

/** A request that a client could make that knows the document alone. */
export interface GeneratedRequest {
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Names of the parameters that are not as documented. */
  readonly faults: readonly string[];
}

const wordCharacters = [...'ABCXYZabcxyz0189_-'];

/** Texts that may or may not be values of a parameter; its schema decides. */
const candidates: fc.Arbitrary<string> = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n + 5n }).map(String),
  fc.integer({ min: -1, max: 5000 }).map(String),
  fc.string({ unit: fc.constantFrom(...wordCharacters), minLength: 1, maxLength: 140 }),
  fc.string({ unit: 'grapheme', maxLength: 90 }),
  fc.string({ unit: 'binary', maxLength: 260 }),
  fc.constantFrom(
    ...['', ' ', '.', '..', 'a_', '01', '-1', '1.0', '1e2', '0x10', '%', '%zz', 'a/b', 'a\\b'],
    ...['true', 'false', 'TRUE', '1', 'null', '128', '128 ', '٣', '\0', '\n', 'a.b', 'PNG', 'bmp'],
    ...['a'.repeat(128), 'a'.repeat(129), 'é'.repeat(127), 'é'.repeat(128), 'x'.repeat(255)],
    ...['18446744073709551615', '18446744073709551616', 'undefined', '[object Object]'],
  ),
);

/** Values of the headers that decide of conditions and ranges, good and bad. */
const headerValues: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...['*', '"x"', 'W/"x", "y"', 'Sat, 01 Jan 2022 00:00:00 GMT', 'Thu, 01 Jan 2099 00:00:00 GMT'],
    ...['bytes=0-9', 'bytes=-5', 'bytes=99999999-', 'bytes=0-1,3-4', 'bytes=5-1', 'lines=1-2'],
  ),
  fc.string({ unit: fc.constantFrom(...'"*=-,; bytesW/01'), minLength: 1, maxLength: 30 }),
);

/** Requests of an operation with nothing but documented values, made from the document alone. */
export function validRequests(
  reader: OpenapiReader,
  operation: DocumentedOperation,
): fc.Arbitrary<GeneratedRequest> {
  return requestsWith(reader, operation, fc.constant([]));
}

/** The same with one parameter or more of path or query that is not as documented. */
export function invalidRequests(
  reader: OpenapiReader,
  operation: DocumentedOperation,
): fc.Arbitrary<GeneratedRequest> {
  const named = operation.parameters.filter((parameter) => parameter.in !== 'header');
  const names = named.map(({ name }) => name);
  return requestsWith(reader, operation, fc.subarray(names, { minLength: 1 }));
}

function requestsWith(
  reader: OpenapiReader,
  { template, parameters }: DocumentedOperation,
  faultNames: fc.Arbitrary<string[]>,
): fc.Arbitrary<GeneratedRequest> {
  return faultNames.chain((faults) =>
    fc.tuple(...parameters.map((each) => drawValue(reader, each, faults))).map((values) => {
      const given = parameters.flatMap((parameter, at) => {
        const value = values[at];
        return value === undefined ? [] : [{ ...parameter, value }];
      });
      const of = (place: Parameter['in']) => given.filter((parameter) => parameter.in === place);
      const path = of('path').reduce(
        (text, { name, value }) => text.replace(`{${name}}`, () => encodeURIComponent(value)),
        template,
      );
      const query = of('query').map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
      return {
        target: query.length === 0 ? path : `${path}?${query.join('&')}`,
        headers: Object.fromEntries(of('header').map(({ name, value }) => [name, value])),
        faults,
      };
    }),
  );
}

/** A value, or none where none is needed. */
function drawValue(
  reader: OpenapiReader,
  parameter: Parameter,
  faults: readonly string[],
): fc.Arbitrary<string | undefined> {
  if (parameter.in === 'header') return fc.option(headerValues, { freq: 3, nil: undefined });
  const { schema, name } = parameter;
  // A word of another path is no wrong value but another path, says the description.
  const isFault = (text: string): boolean =>
    !reader.isValidText(schema, text) && !reader.words.has(text);
  const values = fc.oneof(candidates, fc.constantFrom(...edgesOf(schema)));
  if (faults.includes(name)) return values.filter(isFault);
  const listed = schema.type === 'boolean' ? [true, false] : schema.enum;
  const value = Array.isArray(listed)
    ? fc.constantFrom(...listed.map(String))
    : values.filter((text) => reader.isValidText(schema, text));
  return parameter.required === true ? value : fc.option(value, { nil: undefined });
}

/** Numbers at the bounds of a schema, and beyond them; of one without bounds, any number. */
function edgesOf({ minimum = 0, maximum = 0 }: Parameter['schema']): string[] {
  return [minimum, maximum].flatMap((bound) =>
    typeof bound === 'number' ? [bound - 1, bound, bound + 1].map(String) : [],
  );
}
