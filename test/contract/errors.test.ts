import { expect, test } from 'vitest';
import { type ErrorCode, errorRegistry, MediaError } from '../../src/contract/errors.ts';

/** Whose fault it is, of those that are not the client's: operators are told of `origin` and `service`. */
const faults: Readonly<Partial<Record<ErrorCode, string>>> = {
  UNSUPPORTED_MEDIA_TYPE: 'original',
  MEDIA_TOO_LARGE: 'original',
  UNPROCESSABLE_MEDIA: 'original',
  INTERNAL_ERROR: 'service',
  ORIGIN_ERROR: 'origin',
  OVERLOADED: 'load',
  ORIGIN_TIMEOUT: 'origin',
  TRANSFORM_TIMEOUT: 'original',
};

// That these are the codes and statuses of contract §5, test/readme.test.ts compares with its table.
test.each(Object.keys(errorRegistry) as ErrorCode[])('%s is its row of the registry', (code) => {
  const { status, message, fault } = errorRegistry[code];
  expect(fault).toBe(faults[code] ?? 'client');
  expect(message).toMatch(/^[A-Z][^\n]+\.$/);
  const error = new MediaError(code);
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
