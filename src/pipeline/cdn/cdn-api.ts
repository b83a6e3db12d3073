import type { CdnCallOutcome } from '../meter.ts';

export interface CdnApi {
  readonly name: string;
  /**
   * Purges all responses with one of the tags.
   *
   * @param reference 32 characters, the same only for retries of this call
   * @throws CdnFailure if the API did not accept all tags; or `signal.reason`
   */
  purge(tags: readonly string[], reference: string, signal: AbortSignal): Promise<void>;
}

export class CdnFailure extends Error {
  override readonly name = 'CdnFailure';
  readonly outcome: Exclude<CdnCallOutcome, 'taken'>;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, outcome: CdnFailure['outcome'], retryAfterMs?: number) {
    super(message);
    this.outcome = outcome;
    this.retryAfterMs = retryAfterMs;
  }
}
