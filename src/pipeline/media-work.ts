import type { MediaRequest } from '../contract/media-request.ts';
import { unlessAborted } from './abort.ts';
import type { CacheOutcome } from './cache-outcome.ts';
import type { MediaResult } from './ports.ts';
import type { Charge } from './rates.ts';
import type { RenderCost } from './render/render-cost.ts';
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
  /** Who is charged for a render that this request begins; asked for only then. */
  readonly client: () => string;
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

/** The request that begins a render. */
export interface Payer {
  readonly trace: RequestTrace;
  /**
   * @param costMs what the render is estimated to take of one core, in milliseconds
   * @returns `undefined` where no client is charged
   * @throws MediaError `RATE_LIMITED`
   */
  readonly charge: (costMs: number) => Charge | undefined;
}

/**
 * A result that is ready, or that only a render is left of: makes it at the first call by a request that can pay for
 * it; the same promise for all later ones, which pay nothing.
 *
 * @throws MediaError `RATE_LIMITED`: to this request alone, and nothing is begun
 */
export type PreparedMedia = (payer: Payer) => Promise<MadeMedia>;

/** The state of a result, which is known before the result is made. */
export interface IdentifiedMedia {
  readonly validators: () => Validators;
  /** Of a response that needs no more than the state. */
  readonly outcome: CacheOutcome;
  /** Whether there is a result; if not, it is still to be made, which may fail. */
  readonly isMade: boolean;
  /** Finds out what is left to be done, at the first call; the same promise each time. */
  readonly prepare: () => Promise<PreparedMedia>;
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
    prepare: async () => readyMade({ result, outcome }),
  };
}

/** What nothing is left to be done for. */
export function readyMade(made: MadeMedia): PreparedMedia {
  return async () => made;
}

/** What a render is left of, which the first request that can pay for it begins. */
export function onceCharged(
  { typicalMs }: RenderCost,
  render: (trace: RequestTrace, charge: Charge | undefined) => Promise<MadeMedia>,
): PreparedMedia {
  let made: Promise<MadeMedia> | undefined;
  const run = async (trace: RequestTrace, charge: Charge | undefined): Promise<MadeMedia> => {
    try {
      return await render(trace, charge);
    } finally {
      charge?.end();
    }
  };
  return (payer) => {
    made ??= run(payer.trace, payer.charge(typicalMs));
    return made;
  };
}

/** Waits for as much of the work on a key as one request needs. */
export async function waitForMedia(
  identifying: Promise<IdentifiedMedia>,
  { signal, isCurrent }: ServeOptions,
  payer: Payer,
  note: (outcome: CacheOutcome) => void,
): Promise<Served> {
  const identified = await unlessAborted(identifying, signal);
  const { validators, outcome, isMade } = identified;
  const isEnough = isCurrent(validators, isMade);
  // That the state is known is a hit for a request that needs no more. To make the body is none, nor if it fails.
  if (isEnough || isMade) note(outcome);
  if (isEnough) return { kind: 'current', validators: validators() };
  const prepared = await unlessAborted(identified.prepare(), signal);
  // Each request by itself: that one of them has nothing left is no refusal of the others.
  const made = await unlessAborted(prepared(payer), signal);
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
