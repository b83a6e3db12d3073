import type { ErrorCode } from '../contract/errors.ts';
import { MediaError } from '../contract/errors.ts';

/**
 * Why nothing was fetched from a site, in a word, for metrics. Refused by us: its URL breaks a rule, its host is not
 * one of those that may be asked, its address may not be dialled, a redirect may not be followed, the request has come
 * through us before, it failed just now. Its own fault: its name has no address, nothing listens there, the
 * certificate is not its, what it sends is not what a client may take, it was too slow.
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

/** Details of a failure, for the log alone. */
export interface SiteFailureDetails {
  readonly reason: SiteFailureReason;
  /** Host of the URL that could not be fetched, which after a redirect is not the requested one. */
  readonly host?: string | undefined;
  /** The address that may not be dialled. */
  readonly address?: string | undefined;
  /** URL of this service to which another site redirects. */
  readonly ownUrl?: string | undefined;
  readonly cause?: unknown;
}

/** The cause of an `ORIGIN_ERROR` or `ORIGIN_TIMEOUT` where the origin is another site. */
export class SiteFailure extends Error {
  override readonly name = 'SiteFailure';
  readonly details: SiteFailureDetails;

  constructor(message: string, details: SiteFailureDetails) {
    super(message, { cause: details.cause });
    this.details = details;
  }
}

/** The error of a request whose site may not be asked, or has failed: to clients all of them look alike. */
export function siteError(message: string, details: SiteFailureDetails): MediaError {
  const code: ErrorCode = details.reason === 'time' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR';
  return new MediaError(code, { cause: new SiteFailure(message, details) });
}

/** Returns the URL of this service to which another site redirects, if that has caused the error. */
export function ownUrlOf(error: unknown): string | undefined {
  const cause = error instanceof MediaError ? error.cause : undefined;
  return cause instanceof SiteFailure ? cause.details.ownUrl : undefined;
}

/** Whether another site, or a rule of fetching from sites, has caused an error. */
export function isSiteFailure(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof SiteFailure;
}
