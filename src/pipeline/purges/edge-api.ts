import type { EdgeCallOutcome } from '../meter.ts';

/** API of the CDN in front. */
export interface EdgeApi {
  readonly name: string;
  /**
   * Purges all responses with one of the tags.
   *
   * @param reference text of 32 characters, the same for the retries of a call and for no other
   * @throws EdgeFailure if the API has not taken all tags; `signal.reason`
   */
  purge(tags: readonly string[], reference: string, signal: AbortSignal): Promise<void>;
}

/** A call that the API has not taken. */
export class EdgeFailure extends Error {
  override readonly name = 'EdgeFailure';
  readonly outcome: Exclude<EdgeCallOutcome, 'taken'>;
  /** Wait that the API asks for. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, outcome: EdgeFailure['outcome'], retryAfterMs?: number) {
    super(message);
    this.outcome = outcome;
    this.retryAfterMs = retryAfterMs;
  }
}
