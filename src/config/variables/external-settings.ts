import { pathEncodings } from '../../contract/signing/external-path.ts';
import { optional, setting, type ValuesOf } from '../setting.ts';
import {
  bytes,
  choice,
  dnsServer,
  integer,
  listOf,
  MEBIBYTE,
  nat64Prefix,
  network,
  seconds,
  siteName,
} from '../setting-types.ts';
import { keySettings, readKeys } from './key-settings.ts';
import type { platformTable } from './platform-settings.ts';

const none = { defaultText: 'none' } as const;

/** Contract §8. */
export const EXTERNAL_CONNECTIONS = 64;

/** Contract §8. */
export const externalTable = {
  ...keySettings(
    'EXTERNAL_SIGNING_KEYS',
    'signing keys of external media; without keys, external media are a 404. Darkroom accepts signatures by all of them; `darkroom sign` uses the first',
  ),
  EXTERNAL_PATH_ENCODING: optional(
    choice(...pathEncodings),
    "encoding of the URL in a [segmented path](contract.md#8-external-media): `plain` is exactly the URL's path, `fluxer` percent-encodes it once more",
    { defaultText: '`plain`; `fluxer` with `COMPATIBILITY=fluxer`' },
  ),
  EXTERNAL_PORTS: setting(
    listOf(integer(1, 65_535)),
    [80, 443],
    'ports that Darkroom may connect to on other sites',
  ),
  EXTERNAL_ALLOWED_HOSTS: optional(
    listOf(siteName),
    'the only sites to fetch from, including subdomains',
    { defaultText: 'all' },
  ),
  EXTERNAL_BLOCKED_HOSTS: optional(
    listOf(siteName),
    'sites never to fetch from, including subdomains, even if `EXTERNAL_ALLOWED_HOSTS` lists them',
    none,
  ),
  EXTERNAL_ALLOWED_NETWORKS: optional(
    listOf(network),
    'addresses that are allowed although they are not public, such as your own servers',
    none,
  ),
  EXTERNAL_BLOCKED_NETWORKS: optional(
    listOf(network),
    'addresses never to connect to, even if `EXTERNAL_ALLOWED_NETWORKS` lists them',
    none,
  ),
  EXTERNAL_NAT64_PREFIXES: optional(
    listOf(nat64Prefix),
    'NAT64 prefixes of your network: Darkroom also checks the IPv4 address embedded in an address with such a prefix',
    none,
  ),
  EXTERNAL_DNS_SERVERS: optional(
    listOf(dnsServer),
    "DNS servers for the names of other sites; the system's servers are read once, at startup",
    {
      defaultText: "the system's",
    },
  ),
  EXTERNAL_MAX_BYTES: setting(
    bytes(1),
    500 * MEBIBYTE,
    'maximum size of an image, video or audio file of another site that is passed through unchanged',
  ),
  EXTERNAL_MIN_AGE_SECONDS: setting(
    seconds,
    3_600,
    'minimum `max-age` of external media, regardless of what the site sends',
  ),
  EXTERNAL_MAX_AGE_SECONDS: setting(seconds, 604_800, 'maximum `max-age` of external media'),
};

export function readExternal(
  values: ValuesOf<typeof externalTable & typeof platformTable> & {
    readonly QUEUE_TIMEOUT_MS: number;
  },
  version: string,
) {
  const keys = readKeys(values, 'EXTERNAL_SIGNING_KEYS');
  if (keys === undefined) return undefined;
  return {
    keys,
    pathEncoding:
      values.EXTERNAL_PATH_ENCODING ?? (values.COMPATIBILITY === 'fluxer' ? 'fluxer' : 'plain'),
    publicUrls: values.PUBLIC_URLS ?? [],
    ports: values.EXTERNAL_PORTS,
    allowedHosts: values.EXTERNAL_ALLOWED_HOSTS ?? [],
    blockedHosts: values.EXTERNAL_BLOCKED_HOSTS ?? [],
    allowedNetworks: values.EXTERNAL_ALLOWED_NETWORKS ?? [],
    blockedNetworks: values.EXTERNAL_BLOCKED_NETWORKS ?? [],
    nat64Prefixes: values.EXTERNAL_NAT64_PREFIXES ?? [],
    dnsServers: values.EXTERNAL_DNS_SERVERS,
    maxBytes: values.EXTERNAL_MAX_BYTES,
    minAgeSeconds: values.EXTERNAL_MIN_AGE_SECONDS,
    maxAgeSeconds: values.EXTERNAL_MAX_AGE_SECONDS,
    maxWaitMs: values.QUEUE_TIMEOUT_MS,
    version,
  };
}
