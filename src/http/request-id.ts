import { randomUUID } from 'node:crypto';

/**
 * What an id from outside may be made of: UUIDs, ULIDs, trace ids, what nginx and load balancers make. It is
 * given back in a header and written to the log, so nothing that either could take for its own syntax.
 */
export const REQUEST_ID_FORM = /^[A-Za-z0-9._~+/=:-]{1,128}$/;

/** The id of a request: that of its `X-Request-Id`, if it is well-formed; else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID_FORM.test(header) ? header : randomUUID();
}
