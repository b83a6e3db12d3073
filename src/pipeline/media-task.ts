import type { MediaRequest } from '../contract/media-request.ts';
import type { Original } from './originals/originals.ts';
import type { MediaResult } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import type { FlightControls } from './single-flight.ts';
import type { Validators } from './validators.ts';

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

/** A response: a body, or the news that the client's is current. */
export type Served =
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
