import type { CdnCallOutcome } from '../meter.ts';

/** API of the CDN in front. */
export interface CdnApi {
  readonly name: string;
  /**
   * Purges all responses with one of the tags.
   *
   * @param reference text of 32 characters, the same for the retries of a call and for no other
   * @throws CdnFailure if the API has not accepted all tags; `signal.reason`
   */
  purge(tags: readonly string[], reference: string, signal: AbortSignal): Promise<void>;
}

/** A call that the API has not accepted. */
export class CdnFailure extends Error {
  override readonly name = 'CdnFailure';
  readonly outcome: Exclude<CdnCallOutcome, 'taken'>;
  /** Wait that the API requests. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, outcome: CdnFailure['outcome'], retryAfterMs?: number) {
    super(message);
    this.outcome = outcome;
    this.retryAfterMs = retryAfterMs;
  }
}
