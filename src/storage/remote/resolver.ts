import { Resolver, TIMEOUT } from 'node:dns/promises';
import type { Clock } from '../../pipeline/ports.ts';
import { siteError } from '../../pipeline/site-failure.ts';

/** A resolver of host names. */
export interface NameResolver {
  /**
   * Resolves all addresses of a host name, of both families.
   *
   * @returns at least one
   * @throws MediaError `ORIGIN_ERROR` if the name has no address; `ORIGIN_TIMEOUT` if no name server responds in time
   */
  resolve(name: string): Promise<readonly string[]>;
}

/** Replacements for tests. */
export interface ResolverDoubles {
  readonly clock?: Clock;
  /** Creates a resolver with the system's servers. */
  readonly createResolver?: () => Resolver;
}

/** Time for a server's first response, in milliseconds, and attempts; together about a connection's deadline. */
const QUERY = { timeout: 1_000, tries: 2 } as const;

/** Interval between checks of the system's servers, in milliseconds: c-ares reads them once for a resolver. */
const SAME_SERVERS_MS = 30_000;

/**
 * Resolves names by c-ares: sockets of the event loop. `dns.lookup` would take threads of the pool that reads files,
 * all four of which a few unanswered names could block; and it reads `/etc/hosts`, which names internal hosts.
 *
 * Nothing is cached: the checked addresses are the ones that are dialled.
 */
export class CaresResolver implements NameResolver {
  readonly #clock: Clock;
  readonly #createResolver: () => Resolver;
  readonly #hasSystemServers: boolean;
  #resolver: Resolver;
  #checkedAtMs: number;

  /** @param servers addresses, with ports other than 53; empty: the system's servers */
  constructor(
    servers: readonly string[],
    {
      clock = { nowMs: () => performance.now() },
      createResolver = () => new Resolver(QUERY),
    }: ResolverDoubles = {},
  ) {
    this.#clock = clock;
    this.#createResolver = createResolver;
    this.#hasSystemServers = servers.length === 0;
    this.#resolver = createResolver();
    this.#checkedAtMs = clock.nowMs();
    if (!this.#hasSystemServers) this.#resolver.setServers(servers);
  }

  async resolve(name: string): Promise<readonly string[]> {
    if (this.#hasSystemServers) this.#checkServers();
    const answers = await Promise.allSettled([
      this.#resolver.resolve4(name),
      this.#resolver.resolve6(name),
    ]);
    const addresses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    );
    if (addresses.length > 0) return addresses;
    const causes = answers.flatMap((answer) =>
      answer.status === 'rejected' ? [answer.reason] : [],
    );
    // If one family timed out, it is unknown whether the name has an address, even if the other one has none.
    const late = causes.find(({ code }) => code === TIMEOUT);
    if (late !== undefined) {
      throw siteError('No name server answers.', { reason: 'time', host: name, cause: late });
    }
    throw siteError('The name has no address.', { reason: 'name', host: name, cause: causes[0] });
  }

  /** Replaces the resolver if the system's servers have changed; the old one knows which servers do not respond. */
  #checkServers(): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#checkedAtMs < SAME_SERVERS_MS) return;
    this.#checkedAtMs = nowMs;
    const fresh = this.#createResolver();
    if (fresh.getServers().join() !== this.#resolver.getServers().join()) this.#resolver = fresh;
  }
}
