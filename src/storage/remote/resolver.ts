import { Resolver, TIMEOUT } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { siteError } from '../../pipeline/site-failure.ts';

/** Addresses of a host name. */
export interface ResolvedName {
  /** At least one. */
  readonly addresses: readonly string[];
  /** Addresses of a family whose lookup is still running, none if it fails; `undefined` if both lookups have ended. */
  readonly late?: Promise<readonly string[]> | undefined;
}

/** A resolver of host names. */
export interface NameResolver {
  /**
   * Resolves the addresses of a host name, of both families.
   *
   * @throws MediaError `ORIGIN_ERROR` if the name has no address; `ORIGIN_TIMEOUT` if no name server responds in time
   */
  resolve(name: string): Promise<ResolvedName>;
}

/** Time for the slower family after the addresses of the other one (RFC 8305 §3), in milliseconds. */
const RESOLUTION_DELAY_MS = 50;

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
      const lookups = [resolver.resolve4(host), resolver.resolve6(host)];
      const settled = Promise.allSettled(lookups);
      // Some servers drop queries for AAAA: such a lookup takes seconds to fail.
      const first = await Promise.any(lookups).catch(() => undefined);
      if (first !== undefined && !(await isSoon(settled))) {
        const isOther = (address: string): boolean => !first.includes(address);
        const late = settled.then((all) => listAddresses(all).filter(isOther));
        return { addresses: first, late };
      }
      const answers = await settled;
      const addresses = listAddresses(answers);
      if (addresses.length > 0) return { addresses };
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

type Answers = readonly PromiseSettledResult<readonly string[]>[];

/** Whether work settles within the resolution delay. */
async function isSoon(settling: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const delay = sleep(RESOLUTION_DELAY_MS, false, { signal: settled.signal });
  try {
    return await Promise.race([settling.then(() => true), delay]);
  } finally {
    settled.abort();
  }
}

function listAddresses(answers: Answers): readonly string[] {
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}
