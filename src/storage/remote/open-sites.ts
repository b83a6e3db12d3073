import { EXTERNAL_CONNECTIONS } from '../../config/variables/external-settings.ts';
import type { ExternalPolicy } from '../../contract/external-url.ts';
import type { FetchOutcome } from '../../pipeline/meter.ts';
import type { ExternalMedia, SiteLimits } from '../../pipeline/originals/backend.ts';
import { type ExchangeLimits, SiteExchange } from './exchange.ts';
import { AddressGuard, type AddressRules } from './guard.ts';
import { createResolver, type NameResolver } from './resolver.ts';
import type { FreshnessBounds } from './response.ts';
import { RemoteSites } from './sites.ts';

/** Settings of external media that fetching needs. */
export interface SiteSettings extends ExternalPolicy, AddressRules, FreshnessBounds {
  /** `undefined`: the system's servers. */
  readonly dnsServers: readonly string[] | undefined;
  readonly version: string;
  readonly maxBytes: number;
  readonly maxWaitMs: number;
}

/** All deadlines and bounds of external media (contract §8), including those that the pipeline enforces. */
export interface RemoteLimits extends ExchangeLimits, Omit<SiteLimits, 'maxBytes'> {
  readonly pauseMs: number;
  readonly connectTimeoutMs: number;
  readonly chainTimeoutMs: number;
}

/** Replacements for tests. */
export interface SiteDoubles {
  readonly limits?: Partial<RemoteLimits>;
  readonly resolver?: NameResolver;
  readonly onDial?: (address: string, port: number) => void;
}

/** Opens the access to other sites. */
export function openSites(
  settings: SiteSettings,
  noteFetch: (outcome: FetchOutcome) => void,
  { limits: given, resolver, onDial }: SiteDoubles = {},
  checkRedirect?: (url: string) => void,
): ExternalMedia {
  const { maxWaitMs, dnsServers = [] } = settings;
  const limits: RemoteLimits = {
    perHost: { slots: 4, maxWaiting: 64, maxWaitMs },
    inAll: { slots: EXTERNAL_CONNECTIONS, maxWaiting: 512, maxWaitMs },
    connectTimeoutMs: 3_000,
    firstByteTimeoutMs: 5_000,
    headTimeoutMs: 20_000,
    chainTimeoutMs: 10_000,
    wholeBodyTimeoutMs: 20_000,
    pauseMs: 10_000,
    // The other connections are reserved for transforms.
    maxStreams: 48,
    ...given,
  };
  const exchange = new SiteExchange(limits, {
    guard: new AddressGuard(settings),
    resolver: resolver ?? createResolver(dnsServers),
    connectTimeoutMs: limits.connectTimeoutMs,
    ...(onDial && { onDial }),
  });
  const source = new RemoteSites({ ...settings, ...limits, exchange, noteFetch, checkRedirect });
  return { source, limits: { ...limits, maxBytes: settings.maxBytes } };
}
