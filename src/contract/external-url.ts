/** Rules for URLs of other sites, as far as the URL itself decides (contract §8, "What may be fetched"). */

/** Longest URL, in bytes of its canonical form, which is ASCII. */
export const MAX_EXTERNAL_URL_BYTES = 8_192;

/** Sites that the operator allows; names are written as the URL parser writes them. */
export interface ExternalPolicy {
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

/** Result of checking a URL: where a fetch would go, or why the URL is refused. */
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
  if (CONTROL.test(text)) return refuse('control character');
  const url = parseUrl(text);
  if (url === undefined) return refuse('no url');
  const usualPort = usualPorts[url.protocol];
  if (usualPort === undefined) return refuse('scheme');
  if (url.username !== '' || url.password !== '') return refuse('credentials');
  if (url.href.length > MAX_EXTERNAL_URL_BYTES) return refuse('too long');
  const addressV6 = ADDRESS_V6.exec(url.hostname)?.[1];
  const isAddress = addressV6 !== undefined || ADDRESS_V4.test(url.hostname);
  if (!isAddress && !HOST_NAME.test(url.hostname)) return refuse('host');
  const port = url.port === '' ? usualPort : Number(url.port);
  if (!policy.ports.includes(port)) return refuse('port');
  const host = addressV6 ?? url.hostname;
  const isNamed = (hosts: readonly string[]): boolean =>
    hosts.some((name) => host === name || host.endsWith(`.${name}`));
  const isAllowed = policy.allowedHosts.length === 0 || isNamed(policy.allowedHosts);
  if (!isAllowed || isNamed(policy.blockedHosts)) return refuse('host not allowed');
  return { kind: 'fetchable', url, host, isAddress, port };
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

/**
 * Whether the `CDN-Loop` header of a request contains our token: a site that fetches its image from us would keep us
 * busy with ourselves.
 */
export function hasOwnToken(header: string): boolean {
  return Array.from(header.matchAll(CDN_INFO)).some(
    ([info]) => info.split(';', 1)[0]?.trim().toLowerCase() === CDN_TOKEN,
  );
}
