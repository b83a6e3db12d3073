/** Rules for URLs of other sites, except for their IP addresses (contract §8, "What may be fetched"). */

import { decodeOnce } from './media-path.ts';

export const MAX_EXTERNAL_URL_BYTES = 8_192;

/** Base URL of this service (`PUBLIC_URLS`): an origin, and the decoded segments of a path. */
export interface PublicUrl {
  readonly origin: string;
  readonly segments: readonly string[];
}

/** Permitted sites; host names are in the format of the URL parser. */
export interface ExternalPolicy {
  readonly publicUrls: readonly PublicUrl[];
  readonly ports: readonly number[];
  /** Includes subdomains; an empty list allows all hosts. */
  readonly allowedHosts: readonly string[];
  /** Includes subdomains; takes precedence over `allowedHosts`. */
  readonly blockedHosts: readonly string[];
}

/** Reasons to reject a URL, for the log and metrics. */
export const urlRefusals = [
  'control character',
  'no url',
  'scheme',
  'credentials',
  'too long',
  'host',
  'port',
  'host not allowed',
] as const;
export type UrlRefusal = (typeof urlRefusals)[number];

/** Result of checking a URL; `local` for a URL of this service. */
export type ExternalTarget =
  | {
      readonly kind: 'fetchable';
      readonly url: URL;
      /** Name in lower case without a final dot, or IP address without brackets. */
      readonly host: string;
      readonly isAddress: boolean;
      readonly port: number;
    }
  | { readonly kind: 'local' }
  | { readonly kind: 'refused'; readonly reason: UrlRefusal };

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

// The URL parser would silently remove tabs and line breaks.
const CONTROL = /\p{Cc}/u;
const ADDRESS_V4 = /^\d+\.\d+\.\d+\.\d+$/;
const ADDRESS_V6 = /^\[(.+)\]$/;
// RFC 952 forbids hyphens at the ends of labels, but such names exist.
const HOST_NAME = /^(?=.{1,253}$)(?:[a-z\d_-]{1,63}\.)+(?!\d+$)[a-z\d_-]{1,63}$/;

/**
 * Returns the canonical form of a URL: the `href` of the URL parser, without fragment and without a final dot of the host.
 * Keeps percent-encodings. Returns `undefined` if the text is not a URL.
 */
export function canonicalUrlOf(text: string): string | undefined {
  return parseUrl(text)?.href;
}

/** Checks the URL of a signed target or a redirect. The caller must also check the IP addresses of its host. */
export function checkExternalUrl(text: string, policy: ExternalPolicy): ExternalTarget {
  const url = readValidUrl(text);
  if (typeof url === 'string') return refuse(url);
  if (findLocalTarget(text, policy.publicUrls) !== undefined) return { kind: 'local' };
  const addressV6 = ADDRESS_V6.exec(url.hostname)?.[1];
  const isAddress = addressV6 !== undefined || ADDRESS_V4.test(url.hostname);
  if (!isAddress && !HOST_NAME.test(url.hostname)) return refuse('host');
  const port = Number(url.port || usualPorts[url.protocol]);
  if (!policy.ports.includes(port)) return refuse('port');
  const host = addressV6 ?? url.hostname;
  const isNamed = (hosts: readonly string[]): boolean =>
    hosts.some((name) => host === name || host.endsWith(`.${name}`));
  const isAllowed = policy.allowedHosts.length === 0 || isNamed(policy.allowedHosts);
  if (!isAllowed || isNamed(policy.blockedHosts)) return refuse('host not allowed');
  return { kind: 'fetchable', url, host, isAddress, port };
}

/** Returns a URL that follows all rules except those for host and port, or the reason to reject it. */
function readValidUrl(text: string): URL | UrlRefusal {
  if (CONTROL.test(text)) return 'control character';
  const url = parseUrl(text);
  if (url === undefined) return 'no url';
  if (usualPorts[url.protocol] === undefined) return 'scheme';
  if (url.username !== '' || url.password !== '') return 'credentials';
  return url.href.length > MAX_EXTERNAL_URL_BYTES ? 'too long' : url;
}

/**
 * Returns the request target of a URL of this service, without the path of the longest matching base URL; `undefined` for
 * other URLs and invalid texts.
 */
export function findLocalTarget(
  text: string,
  publicUrls: readonly PublicUrl[],
): string | undefined {
  const url = publicUrls.length > 0 ? readValidUrl(text) : 'no url';
  if (typeof url === 'string') return undefined;
  const segments = url.pathname.split('/').slice(1);
  const decoded = segments.map(decodeOnce);
  const lengths = publicUrls
    .filter(({ origin }) => origin === url.origin)
    .filter((base) => base.segments.every((segment, index) => segment === decoded[index]))
    .map((base) => base.segments.length);
  if (lengths.length === 0) return undefined;
  return `/${segments.slice(Math.max(...lengths)).join('/')}${url.search}`;
}

/** Parses an http or https URL without query and fragment; returns `undefined` for other texts. */
export function parsePublicUrl(text: string): PublicUrl | undefined {
  const url = readValidUrl(text);
  if (typeof url === 'string' || /[?#]/.test(text)) return undefined;
  const segments = url.pathname.replace(/\/$/, '').split('/').slice(1).map(decodeOnce);
  const isDecoded = segments.every((segment) => segment !== undefined);
  return isDecoded ? { origin: url.origin, segments } : undefined;
}

/** Returns a host in the format of `checkExternalUrl`; `undefined` if the text is neither a name nor an IP address. */
export function canonicalHostOf(text: string): string | undefined {
  if (/[/?#@:\\\s]/.test(text.replace(/^\[[\da-f:.]+\]$/i, ''))) return undefined;
  const hostname = parseUrl(`http://${text}/`)?.hostname;
  const addressV6 = ADDRESS_V6.exec(hostname ?? '')?.[1];
  const isName = /^(?:[a-z\d_-]{1,63}\.)*[a-z\d_-]{1,63}$/.test(hostname ?? '');
  return addressV6 ?? (isName ? hostname : undefined);
}

function parseUrl(text: string): URL | undefined {
  const url = CONTROL.test(text) ? undefined : readUrl(text);
  if (url === undefined) return undefined;
  url.hash = '';
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  return url;
}

/**
 * Parses a URL; returns `undefined` if it is malformed. Does not use `URL.canParse`, which in Node 20 and 22 rejects
 * letters from U+0080 to U+00FF once V8 has optimized its caller.
 */
export function readUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

function refuse(reason: UrlRefusal): ExternalTarget {
  return { kind: 'refused', reason };
}

/** Token of this service in `CDN-Loop` (RFC 8586 §2), which it sends with each request to another site. */
export const CDN_TOKEN = 'darkroom';

// `cdn-info = cdn-id *( OWS ";" OWS parameter )`; a quoted value may contain a comma.
const CDN_INFO = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;

/** Whether a `CDN-Loop` header has the token of this service, so that serving the request would loop. */
export function hasLoopToken(header: string): boolean {
  return Array.from(header.matchAll(CDN_INFO)).some(
    ([info]) => info.split(';', 1)[0]?.trim().toLowerCase() === CDN_TOKEN,
  );
}
