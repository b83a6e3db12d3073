import { Resolver, TIMEOUT } from 'node:dns/promises';
import { siteError } from '../../pipeline/site-failure.ts';

/** A resolver of host names. */
export interface NameResolver {
  /**
   * Resolves all addresses of a host name, of both families: at least one.
   *
   * @throws MediaError `ORIGIN_ERROR` if the name has no address; `ORIGIN_TIMEOUT` if no name server responds in time
   */
  resolve(name: string): Promise<readonly string[]>;
}

/** Time for a server's first response, in milliseconds, and attempts; together about a connection's deadline. */
const QUERY = { timeout: 1_000, tries: 2 } as const;

/**
 * Creates a resolver of names by c-ares: sockets of the event loop. `dns.lookup` would take threads of the pool that
 * reads files, all four of which a few unanswered names could block; and it reads `/etc/hosts`, which names internal
 * hosts. Nothing is cached: the checked addresses are the ones that are dialled.
 *
 * @param servers addresses, with ports other than 53; empty: the system's servers, which are read now
 */
export function createResolver(servers: readonly string[]): NameResolver {
  const resolver = new Resolver(QUERY);
  if (servers.length > 0) resolver.setServers(servers);
  return {
    resolve: async (host) => {
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      const addresses = answers.flatMap((answer) =>
        answer.status === 'fulfilled' ? answer.value : [],
      );
      if (addresses.length > 0) return addresses;
      const causes = answers.flatMap((answer) =>
        answer.status === 'rejected' ? [answer.reason] : [],
      );
      // If one family timed out, it is unknown whether the name has an address, even if the other one has none.
      const late = causes.find(({ code }) => code === TIMEOUT);
      throw late === undefined
        ? siteError('The name has no address.', { reason: 'name', host, cause: causes[0] })
        : siteError('No name server answers.', { reason: 'time', host, cause: late });
    },
  };
}
