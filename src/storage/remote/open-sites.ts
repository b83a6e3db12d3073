import type { ExternalPolicy } from '../../contract/external-url.ts';
import type { SiteMeter } from '../../pipeline/meter.ts';
import type { ExternalMedia, SiteLimits } from '../../pipeline/originals/sites.ts';
import { AddressGuard, type AddressRules } from './address-guard.ts';
import type { FreshnessBounds } from './freshness.ts';
import { CaresResolver, type NameResolver } from './name-resolver.ts';
import { RemoteSites } from './remote-sites.ts';
import { type ConnectionBounds, SiteConnections } from './site-connections.ts';

/** Settings of external media, as far as fetching needs them. */
export interface SiteSettings extends ExternalPolicy, AddressRules, FreshnessBounds {
  /** `undefined`: the system's. */
  readonly dnsServers: readonly string[] | undefined;
  /** Of this program, for `User-Agent`. */
  readonly version: string;
  readonly maxBytes: number;
  readonly maxWaitMs: number;
}

/** All deadlines and bounds of external media (contract §8), those included that the pipeline keeps. */
export interface RemoteLimits extends ConnectionBounds, Omit<SiteLimits, 'maxBytes'> {
  readonly connectTimeoutMs: number;
  readonly headTimeoutMs: number;
  readonly chainTimeoutMs: number;
}

/** What a test puts in the place of the real. */
export interface SiteDoubles {
  readonly limits?: Partial<RemoteLimits>;
  readonly resolver?: NameResolver;
  readonly onDial?: (address: string, port: number) => void;
}

/** The way to other sites, as the pipeline takes it. */
export interface RemoteMedia extends ExternalMedia {
  readonly connections: SiteConnections;
}

/** Opens the way to other sites. */
export function openSites(
  settings: SiteSettings,
  meter: SiteMeter,
  { limits: given, resolver, onDial }: SiteDoubles = {},
): RemoteMedia {
  const { version, maxWaitMs, dnsServers = [] } = settings;
  const limits: RemoteLimits = {
    perHost: { slots: 4, maxWaiting: 64, maxWaitMs },
    inAll: { slots: 64, maxWaiting: 512, maxWaitMs },
    patienceMs: 1_000,
    pauseMs: 10_000,
    connectTimeoutMs: 3_000,
    headTimeoutMs: 5_000,
    chainTimeoutMs: 10_000,
    wholeBodyTimeoutMs: 20_000,
    firstBytesTimeoutMs: 5_000,
    // Some of the connections are left for what is transformed.
    maxStreams: 48,
    ...given,
  };
  const connections = new SiteConnections(limits, {
    guard: new AddressGuard(settings),
    resolver: resolver ?? new CaresResolver(dnsServers),
    connectTimeoutMs: limits.connectTimeoutMs,
    ...(onDial && { onDial }),
  });
  const sites = new RemoteSites({
    ...limits,
    connections,
    policy: settings,
    freshness: settings,
    userAgent: `Darkroom/${version} (media proxy)`,
    meter,
  });
  return { sites, connections, limits: { ...limits, maxBytes: settings.maxBytes } };
}
