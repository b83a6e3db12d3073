import { expect } from 'vitest';
import { type ErrorCode, errorRegistry } from '../../../src/contract/errors.ts';
import { findErrorDeviations } from '../openapi/openapi-reader.ts';
import type { TestApp } from '../test-app.ts';
import { commonHeaders } from './raw-http.ts';

/** Asks for a URL and checks all that every refusal has in common. */
export async function refuse(
  { server }: TestApp,
  request: string | { readonly url: string; readonly headers: Record<string, string> },
  code: ErrorCode,
  cacheControl: string,
) {
  const answer = await server.inject(request);
  const { status, message } = errorRegistry[code];
  expect(answer.statusCode).toBe(status);
  const { errors, ...body } = answer.json();
  expect(body).toEqual({ code, message });
  expect(errors === undefined).toBe(code !== 'INVALID_FORM_BODY');
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(answer.rawPayload.length),
    'cache-control': cacheControl,
    ...commonHeaders,
  });
  const received = { status, headers: answer.headers, body: answer.rawPayload };
  expect(findErrorDeviations('GET', received)).toEqual([]);
  for (const name of ['etag', 'last-modified', 'content-disposition', 'accept-ranges']) {
    expect(answer.headers).not.toHaveProperty(name);
  }
  return { ...answer, errors: errors as readonly { path: string; message: string }[] };
}
