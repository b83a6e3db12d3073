import type { ExternalPolicy } from '../../contract/external-url.ts';
import type { SiteMeter } from '../../pipeline/meter.ts';
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
  readonly maxWaitMs: number;
}

/** Deadlines and bounds (contract §8). */
export interface SiteLimits extends ConnectionBounds {
  readonly connectTimeoutMs: number;
  readonly headTimeoutMs: number;
  readonly chainTimeoutMs: number;
}

/** What a test puts in the place of the real. */
export interface SiteDoubles {
  readonly limits?: Partial<SiteLimits>;
  readonly resolver?: NameResolver;
  readonly onDial?: (address: string, port: number) => void;
}

/** Opens the way to other sites. */
export function openSites(
  settings: SiteSettings,
  meter: SiteMeter,
  { limits: given, resolver, onDial }: SiteDoubles = {},
): { readonly sites: RemoteSites; readonly connections: SiteConnections } {
  const { version, maxWaitMs, dnsServers = [] } = settings;
  const limits: SiteLimits = {
    perHost: { slots: 4, maxWaiting: 64, maxWaitMs },
    inAll: { slots: 64, maxWaiting: 512, maxWaitMs },
    patienceMs: 1_000,
    pauseMs: 10_000,
    connectTimeoutMs: 3_000,
    headTimeoutMs: 5_000,
    chainTimeoutMs: 10_000,
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
  return { sites, connections };
}
