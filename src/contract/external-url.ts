/** Which URLs of other sites may be fetched, as far as the URL itself tells (contract §8, "What may be fetched"). */

/** Longest URL, in bytes of its canonical form, which is ASCII. */
export const MAX_EXTERNAL_URL_BYTES = 8_192;

/** Which sites the operator lets be fetched from; names are as the URL parser writes them. */
export interface ExternalPolicy {
  readonly ports: readonly number[];
  /** With their subdomains; none: all are. */
  readonly allowedHosts: readonly string[];
  /** With their subdomains; these win. */
  readonly blockedHosts: readonly string[];
}

/** What a URL breaks, in words for the log and for the counters. */
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

/** A URL that was looked at: where a fetch of it would go, if it may. */
export type ExternalTarget =
  | {
      readonly kind: 'fetchable';
      /** In canonical form. */
      readonly url: URL;
      /** A name in lower case without a dot at its end, or an address without brackets. */
      readonly host: string;
      /** `host` is an address, which no lookup will look at. */
      readonly isAddress: boolean;
      readonly port: number;
    }
  | { readonly kind: 'refused'; readonly reason: UrlRefusal };

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

// The URL parser would drop some of them, wherever they stand.
const CONTROL = /\p{Cc}/u;
const ADDRESS_V4 = /^\d+\.\d+\.\d+\.\d+$/;
const ADDRESS_V6 = /^\[(.+)\]$/;
// Hyphens at the ends of labels are no host name of RFC 952, and are in use all the same.
const HOST_NAME = /^(?=.{1,253}$)(?:[a-z\d_-]{1,63}\.)+(?!\d+$)[a-z\d_-]{1,63}$/;

/**
 * The canonical form of a URL, by which all spellings of it share one cache entry: what the URL parser's `href`
 * gives, without fragment and without a dot at the host's end; percent-encodings stay as they stand. `undefined`
 * for a text that is no URL.
 */
export function canonicalUrlOf(text: string): string | undefined {
  return parseUrl(text)?.href;
}

/**
 * Looks at a URL, of a signed target or of a redirect. Which addresses its host has, and whether they may be
 * dialled, is still to be found out; a host that is an address is to be checked the same way.
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

/** A host as `examineExternalUrl` compares it; `undefined` for a text that is no name and no address. */
export function canonicalHostOf(text: string): string | undefined {
  if (/[/?#@:\\\s]/.test(text.replace(/^\[[\da-f:.]+\]$/i, ''))) return undefined;
  const hostname = parseUrl(`http://${text}/`)?.hostname;
  const addressV6 = ADDRESS_V6.exec(hostname ?? '')?.[1];
  const isName = /^(?:[a-z\d_-]{1,63}\.)*[a-z\d_-]{1,63}$/.test(hostname ?? '');
  return addressV6 ?? (isName ? hostname : undefined);
}

function parseUrl(text: string): URL | undefined {
  if (CONTROL.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  url.hash = '';
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  return url;
}

function refuse(reason: UrlRefusal): ExternalTarget {
  return { kind: 'refused', reason };
}
