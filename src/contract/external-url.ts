/** Rules for URLs of other sites, as far as the URL itself decides (contract §8, "What may be fetched"). */

import { decodeOnce } from './media-path.ts';

/** Longest URL, in bytes of its canonical form, which is ASCII. */
export const MAX_EXTERNAL_URL_BYTES = 8_192;

/** A URL below which this service is reached: an origin, and the segments of a path, decoded. */
export interface PublicUrl {
  readonly origin: string;
  readonly segments: readonly string[];
}

/** Sites that the operator allows; names are written as the URL parser writes them. */
export interface ExternalPolicy {
  /** Public URLs of this service itself, which never fetches from them. */
  readonly publicUrls: readonly PublicUrl[];
  readonly ports: readonly number[];
  /** Includes subdomains; an empty list allows all hosts. */
  readonly allowedHosts: readonly string[];
  /** Includes subdomains; wins over `allowedHosts`. */
  readonly blockedHosts: readonly string[];
}

/** Reasons to refuse a URL, as the log and the counters name them. */
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

/** Result of checking a URL: where a fetch would go, that it is one of our own, or why it is refused. */
export type ExternalTarget =
  | {
      readonly kind: 'fetchable';
      /** In canonical form. */
      readonly url: URL;
      /** A name in lower case without a dot at its end, or an address without brackets. */
      readonly host: string;
      /** Whether `host` is an IP address, which no DNS lookup would check. */
      readonly isAddress: boolean;
      readonly port: number;
    }
  | { readonly kind: 'own' }
  | { readonly kind: 'refused'; readonly reason: UrlRefusal };

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

// The URL parser would drop some control characters, wherever they stand.
const CONTROL = /\p{Cc}/u;
const ADDRESS_V4 = /^\d+\.\d+\.\d+\.\d+$/;
const ADDRESS_V6 = /^\[(.+)\]$/;
// RFC 952 forbids hyphens at the ends of labels, but such names are in use.
const HOST_NAME = /^(?=.{1,253}$)(?:[a-z\d_-]{1,63}\.)+(?!\d+$)[a-z\d_-]{1,63}$/;

/**
 * Returns the canonical form of a URL, under which all its spellings share one cache entry: the `href` of the URL
 * parser, without fragment and without a trailing dot of the host; percent-encodings stay as they are. Returns
 * `undefined` if the text is not a URL.
 */
export function canonicalUrlOf(text: string): string | undefined {
  return parseUrl(text)?.href;
}

/**
 * Checks the URL of a signed target or of a redirect. The caller still has to resolve its host and to check whether the
 * addresses may be dialled; a host that is an IP address needs the same check.
 */
export function examineExternalUrl(text: string, policy: ExternalPolicy): ExternalTarget {
  const url = readSoundUrl(text);
  if (typeof url === 'string') return refuse(url);
  if (findOwnTarget(text, policy.publicUrls) !== undefined) return { kind: 'own' };
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

/** Returns a URL that keeps the rules on everything but its host and port, or the rule that it breaks. */
function readSoundUrl(text: string): URL | UrlRefusal {
  if (CONTROL.test(text)) return 'control character';
  const url = parseUrl(text);
  if (url === undefined) return 'no url';
  if (usualPorts[url.protocol] === undefined) return 'scheme';
  if (url.username !== '' || url.password !== '') return 'credentials';
  return url.href.length > MAX_EXTERNAL_URL_BYTES ? 'too long' : url;
}

/**
 * Returns path and query of a URL as a target of this service, without the path of the public URL that it is below: of
 * several, the longest. `undefined` if it is below none of them, or not a URL by the rules above.
 */
export function findOwnTarget(text: string, publicUrls: readonly PublicUrl[]): string | undefined {
  const url = publicUrls.length > 0 ? readSoundUrl(text) : 'no url';
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

/** Returns `undefined` if a text is not an http or https URL of an origin and a path. */
export function parsePublicUrl(text: string): PublicUrl | undefined {
  const url = readSoundUrl(text);
  if (typeof url === 'string' || /[?#]/.test(text)) return undefined;
  const segments = url.pathname.replace(/\/$/, '').split('/').slice(1).map(decodeOnce);
  const isDecoded = segments.every((segment) => segment !== undefined);
  return isDecoded ? { origin: url.origin, segments } : undefined;
}

/** Returns a host as `examineExternalUrl` compares it; `undefined` if the text is neither a name nor an address. */
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
 * Parses a URL; `undefined` if it is malformed. Not by `URL.canParse`: in Node 20 and 22 it rejects letters from U+0080
 * to U+00FF once V8 has optimized its caller.
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

/** Token of this service in `CDN-Loop` (RFC 8586 §2), sent with each request to another site. */
export const CDN_TOKEN = 'darkroom';

// `cdn-info = cdn-id *( OWS ";" OWS parameter )`; a quoted value may hold a comma.
const CDN_INFO = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;

/** Whether a `CDN-Loop` header has our token: a site that fetches its image from us would cause a loop. */
export function hasOwnToken(header: string): boolean {
  return Array.from(header.matchAll(CDN_INFO)).some(
    ([info]) => info.split(';', 1)[0]?.trim().toLowerCase() === CDN_TOKEN,
  );
}
