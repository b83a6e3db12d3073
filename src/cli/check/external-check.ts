import type { Config } from '../../config/config.ts';
import { formatCauses } from '../../contract/errors.ts';
import { unlessAborted } from '../../pipeline/abort.ts';
import { AddressGuard } from '../../storage/remote/guard.ts';
import { CaresResolver } from '../../storage/remote/resolver.ts';
import { type Finding, fault, ok } from './finding.ts';

/** A name that always exists (RFC 2606 §3). */
const USUAL_NAME = 'example.com';

/** Checks whether names of other sites can be resolved if external media are enabled. Fetches nothing. */
export async function* checkExternal(
  { external }: Config,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  if (external === undefined) return;
  const { dnsServers = [], allowedHosts } = external;
  const name = allowedHosts.find((host) => /\.\w*[a-z]/.test(host)) ?? USUAL_NAME;
  const resolver = new CaresResolver(dnsServers);
  try {
    const addresses = await unlessAborted(resolver.resolve(name), signal);
    const guard = new AddressGuard(external);
    const refused = addresses.find((address) => guard.findFault(address) !== undefined);
    yield refused === undefined
      ? ok('external lookup', `${name} has ${addresses.join(', ')}`)
      : fault(
          'external lookup',
          `${name} has the address ${refused}, which must not be connected to (${guard.findFault(refused)})`,
        );
  } catch (error) {
    signal.throwIfAborted();
    const servers = dnsServers.length === 0 ? "the system's servers" : dnsServers.join(', ');
    yield fault(
      'external lookup',
      `${name} is not resolved by ${servers}, so nothing of other sites would be shown${formatCauses(error)}`,
    );
  }
}
