import { describe, expect, it } from 'vitest';
import { type ErrorCode, errorRegistry, MediaError } from '../../src/contract/errors.ts';

/** The table of contract §5, and whom a fault is told to: the operator of `origin` and `service`. */
const rows: readonly (readonly [ErrorCode, number, string])[] = [
  ['INVALID_FORM_BODY', 400, 'client'],
  ['NOT_FOUND', 404, 'client'],
  ['UNKNOWN_MEDIA', 404, 'client'],
  ['METHOD_NOT_ALLOWED', 405, 'client'],
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

describe('the registry', () => {
  it('has the rows of contract §5 and no others', () => {
    expect(
      Object.entries(errorRegistry).map(([code, { status, fault }]) => [code, status, fault]),
    ).toEqual(rows);
  });

  it.each(rows)('%s has a message of one sentence', (code) => {
    expect(errorRegistry[code].message).toMatch(/^[A-Z][^\n]+\.$/);
  });
});

describe('MediaError', () => {
  it.each(rows)('%s is its row of the registry', (code, status) => {
    const error = new MediaError(code);
    expect(error).toMatchObject({ code, status, message: errorRegistry[code].message });
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('MediaError');
    expect(error.faults).toEqual([]);
    expect(error.retryAfterSeconds).toBeUndefined();
  });

  it('keeps what happened underneath, apart from the message', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.1:9000');
    const error = new MediaError('ORIGIN_ERROR', { cause });
    expect(error.cause).toBe(cause);
    expect(error.message).not.toContain('10.0.0.1');
  });

  it('carries faults and the time of a retry', () => {
    const faults = [{ path: 'size', message: 'Expected something else.' }];
    expect(new MediaError('INVALID_FORM_BODY', { faults }).faults).toEqual(faults);
    expect(new MediaError('OVERLOADED', { retryAfterSeconds: 3 }).retryAfterSeconds).toBe(3);
  });
});
