import type { Readable } from 'node:stream';
import type { ByteRange } from '../ports.ts';

/** By what a site tells one state of a resource from another; its own words, given back to it alone. */
export interface SiteValidators {
  /** As it stands in the `ETag` header, weak or strong. */
  readonly etag: string | undefined;
  /** As it stands in the `Last-Modified` header. */
  readonly lastModified: string | undefined;
  /** Of the URL that had them in the end, which a redirect may have named. */
  readonly urlDigest: string;
}

/** What is asked of a site. */
export interface SiteRequest {
  /** Canonical; or a text that is none and was signed all the same. */
  readonly url: string;
  /** Ends the request, and the body of its response. */
  readonly signal: AbortSignal;
  /** The response may be that these still hold. */
  readonly known?: SiteValidators | undefined;
  /** A part alone is wanted, if the site can give it. */
  readonly range?: ByteRange | undefined;
  /** A strong tag: the part is wanted of this state alone; of another one, the whole. */
  readonly ifRange?: string | undefined;
}

/** A body that a site has begun to send. */
export interface SiteContent {
  readonly kind: 'content';
  /** The bytes that are coming; `undefined`: the whole. */
  readonly part: { readonly first: number; readonly last: number } | undefined;
  /** Of the whole; `undefined` where the site does not say. More or less may come all the same. */
  readonly sizeBytes: number | undefined;
  readonly validators: SiteValidators;
  readonly lastModified: Date | undefined;
  /** How long it may be served before the site is to be asked again, in milliseconds. */
  readonly freshForMs: number;
  /** Not yet flowing; its reader's pace is the site's pace. To destroy it ends the transfer. */
  readonly body: Readable;
}

/** What a site has responded. */
export type SiteResponse =
  | SiteContent
  | { readonly kind: 'unchanged'; readonly freshForMs: number };

/** Bounds of what is taken from other sites. */
export interface SiteLimits {
  /** Until the last byte of what is fetched whole, in milliseconds. */
  readonly wholeBodyTimeoutMs: number;
  /** For the first bytes of what is passed on, behind its head, in milliseconds. */
  readonly firstBytesTimeoutMs: number;
  /** Bodies that are passed on at once. */
  readonly maxStreams: number;
  /** Most bytes that are passed on of one body. */
  readonly maxBytes: number;
}

/** What external media are served with. */
export interface ExternalMedia {
  readonly sites: Sites;
  readonly limits: SiteLimits;
}

/** Other sites, from which anything may come. */
export interface Sites {
  /**
   * Asks for a URL, and follows redirects; each address that is dialled is judged before.
   *
   * @throws MediaError `UNKNOWN_MEDIA` if there is none; `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`, with a `SiteFailure` as
   *   cause, for whatever else has failed or may not be; `OVERLOADED`; or `signal.reason`
   */
  open(request: SiteRequest): Promise<SiteResponse>;
}
