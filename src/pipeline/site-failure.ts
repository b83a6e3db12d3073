import type { ErrorCode } from '../contract/errors.ts';
import { MediaError } from '../contract/errors.ts';

/**
 * Reasons of failed fetches, for metrics. `url` to `remembered`: rejected by Darkroom; `name` to `time`: errors of the
 * site.
 */
export const siteFailureReasons = [
  'url',
  'host',
  'address',
  'redirect',
  'loop',
  'remembered',
  'name',
  'connection',
  'certificate',
  'response',
  'time',
] as const;
export type SiteFailureReason = (typeof siteFailureReasons)[number];

/** Details of a failure, only for the log. */
export interface SiteFailureDetails {
  readonly reason: SiteFailureReason;
  /** Host of the failed URL, which may be that of a redirect. */
  readonly host?: string | undefined;
  /** Rejected address. */
  readonly address?: string | undefined;
  /** URL of this service to which another site redirects. */
  readonly localUrl?: string | undefined;
  readonly cause?: unknown;
}

/** Cause of an `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` of another site. */
export class SiteFailure extends Error {
  override readonly name = 'SiteFailure';
  readonly details: SiteFailureDetails;

  constructor(message: string, details: SiteFailureDetails) {
    super(message, { cause: details.cause });
    this.details = details;
  }
}

/** Returns the error for a site that failed or is not allowed; clients cannot distinguish the two. */
export function siteError(message: string, details: SiteFailureDetails): MediaError {
  const code: ErrorCode = details.reason === 'time' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR';
  return new MediaError(code, { cause: new SiteFailure(message, details) });
}

/** Returns the URL of this service to which another site redirects, if that has caused the error. */
export function localUrlOf(error: unknown): string | undefined {
  const cause = error instanceof MediaError ? error.cause : undefined;
  return cause instanceof SiteFailure ? cause.details.localUrl : undefined;
}

export function isSiteFailure(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof SiteFailure;
}
