import type { MediaRequest } from '../contract/media-request.ts';
import { unlessAborted } from './abort.ts';
import type { CacheOutcome } from './cache-outcome.ts';
import type { MediaResult } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import type { FlightControls } from './single-flight.ts';
import type { Validators } from './validators.ts';

/** What belongs to one request alone. */
export interface ServeOptions {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /**
   * Whether the client has this state already, so that no body is needed; `isMade` says whether there is
   * a body yet. A client that needs none only if there is one is asked about again then.
   */
  readonly isCurrent: (validators: () => Validators, isMade: boolean) => boolean;
}

/** A response: a body, or the news that the client's is current. */
export type Served =
  | { readonly kind: 'current'; readonly validators: Validators }
  | { readonly kind: 'result'; readonly result: MediaResult };

/** What the work on one key begins with. Once a purge has retired it, nothing that it finds out is kept. */
export interface MediaTask extends FlightControls {
  readonly request: MediaRequest;
  readonly key: string;
  /** A result in memory that is not known to be current. */
  readonly known: MediaResult | undefined;
  /** Of the request that began it. */
  readonly trace: RequestTrace;
}

/** The state of a result, which is known before the result is made. */
export interface IdentifiedMedia {
  readonly validators: () => Validators;
  /** Of a response that needs no more than the state. */
  readonly outcome: CacheOutcome;
  /** Whether there is a result; if not, it is still to be made, which may fail. */
  readonly isMade: boolean;
  /** Makes the result at the first call; the same promise each time. */
  readonly make: () => Promise<MadeMedia>;
}

/** A result, and how it came about. */
export interface MadeMedia {
  readonly result: MediaResult;
  readonly outcome: CacheOutcome;
}

/** A result that need not be made. */
export function alreadyMade(result: MediaResult, outcome: CacheOutcome): IdentifiedMedia {
  return {
    validators: () => result,
    outcome,
    isMade: true,
    make: async () => ({ result, outcome }),
  };
}

/** Waits for as much of the work on a key as one request needs. */
export async function waitForMedia(
  identifying: Promise<IdentifiedMedia>,
  { signal, isCurrent }: ServeOptions,
  note: (outcome: CacheOutcome) => void,
): Promise<Served> {
  const identified = await unlessAborted(identifying, signal);
  const { validators, outcome, isMade } = identified;
  const isEnough = isCurrent(validators, isMade);
  // That the state is known is a hit for a request that needs no more. To make the body is none, nor if it fails.
  if (isEnough || isMade) note(outcome);
  if (isEnough) return { kind: 'current', validators: validators() };
  const made = await unlessAborted(identified.make(), signal);
  note(made.outcome);
  const { result } = made;
  return isCurrent(() => result, true)
    ? { kind: 'current', validators: result }
    : { kind: 'result', result };
}

/** What looking a result up in memory has come to. */
export function kindOf(known: MediaResult | undefined): 'miss' | 'stale' {
  return known === undefined ? 'miss' : 'stale';
}
