import { expect, test } from 'vitest';
import { type ErrorCode, errorRegistry, MediaError } from '../../src/contract/errors.ts';

/** The table of contract §5, and whose fault it is: operators are told of `origin` and `service`. */
const rows: readonly (readonly [ErrorCode, number, string])[] = [
  ['INVALID_FORM_BODY', 400, 'client'],
  ['UNAUTHORIZED', 401, 'client'],
  ['ACCESS_DENIED', 403, 'client'],
  ['NOT_FOUND', 404, 'client'],
  ['UNKNOWN_MEDIA', 404, 'client'],
  ['METHOD_NOT_ALLOWED', 405, 'client'],
  ['REQUEST_TIMEOUT', 408, 'client'],
  ['MEDIA_EXISTS', 409, 'client'],
  ['LENGTH_REQUIRED', 411, 'client'],
  ['PAYLOAD_TOO_LARGE', 413, 'client'],
  ['UNSUPPORTED_MEDIA_TYPE', 415, 'original'],
  ['RANGE_NOT_SATISFIABLE', 416, 'client'],
  ['MEDIA_TOO_LARGE', 422, 'original'],
  ['UNPROCESSABLE_MEDIA', 422, 'original'],
  ['RATE_LIMITED', 429, 'client'],
  ['INTERNAL_ERROR', 500, 'service'],
  ['ORIGIN_ERROR', 502, 'origin'],
  ['OVERLOADED', 503, 'load'],
  ['ORIGIN_TIMEOUT', 504, 'origin'],
  ['TRANSFORM_TIMEOUT', 504, 'original'],
];

test('the registry has the rows of contract §5 and no others', () => {
  const own = Object.entries(errorRegistry).map(([code, row]) => [code, row.status, row.fault]);
  expect(own).toEqual(rows);
});

test.each(rows)('%s is its row of the registry, with a message of one sentence', (code, status) => {
  const { message } = errorRegistry[code];
  expect(message).toMatch(/^[A-Z][^\n]+\.$/);
  const error = new MediaError(code);
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: 'MediaError', code, status, message, faults: [] });
  expect(error.retryAfterSeconds).toBeUndefined();
});

test('an error keeps what happened underneath apart from its message', () => {
  const options = {
    cause: new Error('connect ECONNREFUSED 10.0.0.1:9000'),
    faults: [{ path: 'size', message: 'Expected something else.' }],
    retryAfterSeconds: 3,
  };
  const error = new MediaError('ORIGIN_ERROR', options);
  expect(error).toMatchObject(options);
  expect(error.message).not.toContain('10.0.0.1');
});
