import { type ErrorCode, errorRegistry } from '../../../src/contract/errors.ts';
import { refusals } from '../../../src/http/connections/refusal.ts';
import { type headerComponents, headersOf, headersWithIdIfAny, tagHeaders } from './headers.ts';
import { byName, capitalize, type Reference, type ResponseObject, type Schema } from './model.ts';

/** Headers that only responses with this status have. */
const headersByStatus: Readonly<Record<number, readonly (keyof typeof headerComponents)[]>> = {
  404: tagHeaders,
  405: ['Allow'],
  416: ['Content-Range'],
  429: ['Retry-After', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
  451: ['Link'],
  503: ['Retry-After'],
};

/** Members of the body in addition to `code` and `message` (contract §5). */
const membersByCode: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, Schema>>>>> = {
  INVALID_FORM_BODY: {
    errors: { type: 'array', items: { $ref: '#/components/schemas/RequestFault' } },
  },
  RATE_LIMITED: { retry_after: { type: 'number', minimum: 0 } },
};

const codes = Object.keys(errorRegistry) as ErrorCode[];

/** Statuses of messages that are rejected before they become requests. */
export const refusalStatuses = knownStatuses(
  Object.values(refusals).map(({ status }) => status), // among them the 405 for CONNECT only
);

/** Statuses that only signed URLs can have. */
export const signedStatuses: readonly number[] = [errorRegistry.UNAUTHORIZED.status];

/** Errors that only uploads can have. */
const uploadCodes: readonly ErrorCode[] = [
  'ACCESS_DENIED',
  'REQUEST_TIMEOUT',
  'MEDIA_EXISTS',
  'LENGTH_REQUIRED',
  'PAYLOAD_TOO_LARGE',
];

/** Errors of clients that only originals and their renderings can have. */
const renderCodes: readonly ErrorCode[] = ['RATE_LIMITED', 'UNAVAILABLE'];

/** Statuses of these errors. */
export const uploadStatuses: readonly number[] = uploadCodes.map(
  (code) => errorRegistry[code].status,
);

/** Statuses of all other errors of the registry. */
export const registeredStatuses = unsignedStatuses(codes);

/** Statuses of errors that need neither storage nor original. */
export const ownStatuses = unsignedStatuses(
  codes.filter(
    (code) =>
      ['client', 'service'].includes(errorRegistry[code].fault) && !renderCodes.includes(code),
  ),
);

/** Returns references to the responses of these errors, by status. */
export function errorResponses(statuses: readonly number[]): Readonly<Record<string, Reference>> {
  return byName([...statuses].sort(), (status) => ({
    $ref: `#/components/responses/${nameOf(status)}`,
  }));
}

/** Pages of other sites can also read the headers of the rate limits. */
const exposedWithRates = {
  'Access-Control-Expose-Headers': {
    $ref: '#/components/headers/Access-Control-Expose-Headers-With-Rates',
  },
};

/** A response for each status of the registry, and for each status of a rejected message. */
export const errorResponseComponents: Readonly<Record<string, ResponseObject>> = Object.fromEntries(
  unique([...registeredStatuses, ...signedStatuses, ...uploadStatuses, 405, ...refusalStatuses])
    .sort()
    .map((status) => [nameOf(status), describeStatus(status)]),
);

/** Schemas that the responses refer to. */
export const errorSchemas: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(codes.map((code) => [schemaNameOf(code), describeCode(code)])),
  RequestFault: {
    type: 'object',
    description: 'One error of a request. The response lists all errors.',
    properties: {
      path: { type: 'string', description: 'Name of the part of the path, or of the parameter.' },
      message: { type: 'string' },
    },
    required: ['path', 'message'],
    additionalProperties: false,
  },
};

function describeStatus(status: number): ResponseObject {
  const registered = codes.filter((code) => errorRegistry[code].status === status);
  const refused = Object.values(refusals).filter((refusal) => refusal.status === status);
  const messages = unique([
    ...registered.map((code) => `\`${code}\`: ${errorRegistry[code].message}`),
    ...refused.map(({ code, message }) => `\`${code}\`: ${message}`),
  ]);
  const refs = unique([...registered, ...refused.map(({ code }) => code)]).map((code) => ({
    $ref: `#/components/schemas/${schemaNameOf(code)}`,
  }));
  return {
    description: messages.join(' '),
    headers: {
      ...(refused.length > 0 ? headersWithIdIfAny : headersOf)(
        'Cache-Control',
        'Content-Length',
        'Cache-Status',
        'Server-Timing',
        ...(headersByStatus[status] ?? []),
      ),
      ...(status === 429 && exposedWithRates),
    },
    content: {
      'application/json': { schema: refs.length === 1 ? { ...refs[0] } : { oneOf: refs } },
    },
  };
}

function describeCode(code: ErrorCode): Schema {
  const { message } = errorRegistry[code];
  const members = membersByCode[code] ?? {};
  return {
    type: 'object',
    properties: {
      code: { const: code },
      message: { type: 'string', description: 'For people; it may change.', examples: [message] },
      ...members,
      ...(code === 'RATE_LIMITED' && { global: { type: 'boolean' } }),
    },
    required: ['code', 'message', ...Object.keys(members)],
    additionalProperties: false,
  };
}

/** As in `Error404`. */
function nameOf(status: number): string {
  return `Error${status}`;
}

/** As in `UnknownMedia`. */
function schemaNameOf(code: ErrorCode): string {
  return code
    .split('_')
    .map((word) => capitalize(word.toLowerCase()))
    .join('');
}

/** Returns each status once, except the 405 for methods without an operation. */
function knownStatuses(statuses: readonly number[]): readonly number[] {
  return unique(statuses).filter((status) => status !== 405);
}

/** Statuses of operations whose URL is not signed. */
function unsignedStatuses(some: readonly ErrorCode[]): readonly number[] {
  const statuses = some
    .filter((code) => !uploadCodes.includes(code))
    .map((code) => errorRegistry[code].status);
  return knownStatuses(statuses).filter((status) => !signedStatuses.includes(status));
}

function unique<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)];
}
