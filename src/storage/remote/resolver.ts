import { Resolver, TIMEOUT } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { siteError } from '../../pipeline/site-failure.ts';

export interface ResolvedName {
  readonly addresses: readonly string[];
  /** Addresses of the family whose lookup is still running; empty if it fails. Omitted if both lookups have ended. */
  readonly late?: Promise<readonly string[]> | undefined;
}

export interface NameResolver {
  /**
   * Resolves both families. @throws MediaError `ORIGIN_ERROR` without an address; `ORIGIN_TIMEOUT` without a response
   */
  resolve(name: string): Promise<ResolvedName>;
}

/** Wait for the slower family after the addresses of the other one (RFC 8305 §3). */
const RESOLUTION_DELAY_MS = 50;

/** In total about the deadline of a connection. */
const QUERY = { timeout: 1_000, tries: 2 } as const;

/**
 * Creates a resolver with c-ares, without a cache. `dns.lookup` would use the four threads that read files, which a few
 * slow names could block; and it reads `/etc/hosts`, which has internal hosts.
 *
 * @param servers addresses, with ports other than 53; empty for the system's servers, which are read now
 */
export function createResolver(servers: readonly string[]): NameResolver {
  const resolver = new Resolver(QUERY);
  if (servers.length > 0) resolver.setServers(servers);
  return {
    resolve: async (host) => {
      const lookups = [resolver.resolve4(host), resolver.resolve6(host)];
      const settled = Promise.allSettled(lookups);
      // Some servers drop AAAA queries, whose lookup then takes seconds to fail.
      const first = await Promise.any(lookups).catch(() => undefined);
      if (first !== undefined && !(await isSoon(settled))) {
        const isOther = (address: string): boolean => !first.includes(address);
        const late = settled.then((all) => listAddresses(all).filter(isOther));
        return { addresses: first, late };
      }
      const results = await settled;
      const addresses = listAddresses(results);
      if (addresses.length > 0) return { addresses };
      const causes = results.flatMap((result) =>
        result.status === 'rejected' ? [result.reason] : [],
      );
      // After a timeout of one family, the name may have addresses even if the other family has none.
      const late = causes.find(({ code }) => code === TIMEOUT);
      throw late === undefined
        ? siteError('The name has no address.', { reason: 'name', host, cause: causes[0] })
        : siteError('No name server responded.', { reason: 'time', host, cause: late });
    },
  };
}

async function isSoon(settling: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const delay = sleep(RESOLUTION_DELAY_MS, false, { signal: settled.signal });
  try {
    return await Promise.race([settling.then(() => true), delay]);
  } finally {
    settled.abort();
  }
}

function listAddresses(
  results: readonly PromiseSettledResult<readonly string[]>[],
): readonly string[] {
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
}
