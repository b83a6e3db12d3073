import { createHash } from 'node:crypto';
import type { MediaRequest } from '../contract/media-request.ts';
import type { Original } from './originals/original.ts';
import type { MediaResult, OriginalIdentity } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import type { FlightControls } from './single-flight.ts';

/** Validators of one state of a response, which are known before anything is rendered. */
export interface Validators {
  /** Strong entity tag, quoted as it stands in the `ETag` header; `undefined` where another site gives none. */
  readonly etag: string | undefined;
  /** When the original last changed; `undefined` where the origin does not tell. */
  readonly lastModified: Date | undefined;
}

/** Demands of one request, beside what it asks for. */
export interface Ask {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Whether the request has a condition, so that the identity of the original may be all that it needs. */
  readonly isConditional: boolean;
  /** Whether the client has this state of a response that may still have to be made. */
  readonly isCurrent: (validators: Validators) => boolean;
  /** Returns who is charged for a render that this request begins; called only then. */
  readonly client: () => string;
}

/** A response: a body, the news that the client's is current, or that the original is to be sent unchanged. */
export type Served =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'current'; readonly validators: Validators }
  | { readonly kind: 'result'; readonly result: MediaResult };

/** Work on one result, shared by all that ask for it. */
export interface MediaTask extends FlightControls {
  readonly request: MediaRequest;
  /** The canonical request's `resultKey`. */
  readonly key: string;
  readonly original: Original;
  /** Trace of the request that began the work. */
  readonly trace: RequestTrace;
}

/**
 * Returns the validators of a response (contract §4), which are known as soon as the original's identity is.
 *
 * @param key the canonical request's `resultKey`
 * @param release of the pipeline that makes the response
 */
export function validatorsOf(
  { etag, lastModified }: OriginalIdentity,
  key: string,
  release: string,
): Validators & { readonly etag: string } {
  const hash = createHash('sha256')
    .update(JSON.stringify([etag, key, release]))
    .digest('base64url');
  // 132 of 256 bits: no two responses ever meet by chance, and the header stays short.
  return { etag: `"${hash.slice(0, 22)}"`, lastModified };
}
