import type { Config } from '../../config/config.ts';
import { EXTERNAL_CONNECTIONS } from '../../config/variables/external-settings.ts';
import type { FetchOutcome } from '../../pipeline/meter.ts';
import type { ExternalMedia, SiteLimits } from '../../pipeline/originals/backend.ts';
import { createConnector } from './connector.ts';
import { SiteClient, type SiteClientLimits } from './exchange.ts';
import { AddressGuard } from './guard.ts';
import { createResolver, type NameResolver } from './resolver.ts';
import { createRemoteSites } from './sites.ts';

export type SiteSettings = Omit<NonNullable<Config['external']>, 'keys' | 'pathEncoding'>;

/** Deadlines and limits of external media (contract §8), including those that the pipeline enforces. */
export interface RemoteLimits extends SiteClientLimits, Omit<SiteLimits, 'maxBytes'> {
  readonly pauseMs: number;
  readonly connectTimeoutMs: number;
  readonly chainTimeoutMs: number;
}

export interface SiteDoubles {
  readonly limits?: Partial<RemoteLimits>;
  readonly resolver?: NameResolver;
  readonly onDial?: (address: string, port: number) => void;
}

/** @param checkRedirect throws a MediaError if the canonical URL of a redirect is blocked */
export function openSites(
  settings: SiteSettings,
  countFetch: (outcome: FetchOutcome) => void,
  doubles: SiteDoubles = {},
  checkRedirect: (url: string) => void = () => undefined,
): ExternalMedia {
  const { maxWaitMs, dnsServers = [] } = settings;
  const limits: RemoteLimits = {
    perHost: { slots: 4, maxWaiting: 64, maxWaitMs },
    inAll: { slots: EXTERNAL_CONNECTIONS, maxWaiting: 512, maxWaitMs },
    connectTimeoutMs: 3_000,
    firstByteTimeoutMs: 5_000,
    headTimeoutMs: 20_000,
    chainTimeoutMs: 10_000,
    bodyTimeoutMs: 20_000,
    pauseMs: 10_000,
    // The other connections are reserved for transforms.
    maxStreams: 48,
    ...doubles.limits,
  };
  const resolver = doubles.resolver ?? createResolver(dnsServers);
  const guard = new AddressGuard(settings);
  const connect = createConnector(guard, resolver, limits.connectTimeoutMs, doubles.onDial);
  const client = new SiteClient(limits, connect);
  const source = createRemoteSites(settings, limits, client, countFetch, checkRedirect);
  return { source, limits: { ...limits, maxBytes: settings.maxBytes } };
}
