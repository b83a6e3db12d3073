import { Resolver } from 'node:dns/promises';
import { siteError } from '../../pipeline/site-failure.ts';

/** Finds the addresses of a name. */
export interface NameResolver {
  /**
   * Finds all addresses of a host's name, of both families.
   *
   * @returns at least one
   * @throws MediaError `ORIGIN_ERROR` if there is none
   */
  resolve(name: string): Promise<readonly string[]>;
}

/** Time for a server's first answer, in milliseconds, and how often it is asked; together less than a connection has. */
const QUERY = { timeout: 1_000, tries: 2 } as const;

/**
 * Resolves names by c-ares: sockets of the event loop. `dns.lookup` would take threads of the pool that reads files,
 * four of which a few names without an answer could hold; and it reads `/etc/hosts`, which names what is inside.
 *
 * Nothing is kept: what a name was checked for is the very answer that is dialled.
 */
export class CaresResolver implements NameResolver {
  readonly #resolver: Resolver;

  /** @param servers addresses, with ports where they are not 53; none: the system's */
  constructor(servers: readonly string[]) {
    this.#resolver = new Resolver(QUERY);
    if (servers.length > 0) this.#resolver.setServers(servers);
  }

  async resolve(name: string): Promise<readonly string[]> {
    const answers = await Promise.allSettled([
      this.#resolver.resolve4(name),
      this.#resolver.resolve6(name),
    ]);
    const addresses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    );
    if (addresses.length > 0) return addresses;
    const cause = answers.find((answer) => answer.status === 'rejected')?.reason;
    throw siteError('The name has no address.', { reason: 'name', host: name, cause });
  }
}
