import { expect } from 'vitest';
import { type ErrorCode, errorRegistry } from '../../../src/contract/errors.ts';
import { findErrorDeviations } from '../openapi/openapi-reader.ts';
import type { TestApp } from '../test-app.ts';

/** Requests a URL, and checks everything that all error responses share. */
export async function refuse(
  { get }: TestApp,
  url: string,
  code: ErrorCode,
  cacheControl: string,
  requestHeaders: Record<string, string> = {},
  message: string = errorRegistry[code].message,
) {
  const { headers, rawPayload, statusCode } = await get(url, requestHeaders);
  const { status } = errorRegistry[code];
  const { errors: _, ...body } = JSON.parse(String(rawPayload));
  expect([statusCode, body]).toEqual([status, { code, message }]);
  expect(headers['cache-control']).toBe(cacheControl);
  expect(findErrorDeviations('GET', { status, headers, body: rawPayload })).toEqual([]);
  return headers;
}
