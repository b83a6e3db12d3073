import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { buildConnector } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import type { AddressGuard } from './address-guard.ts';
import type { NameResolver } from './name-resolver.ts';

/** What connections are opened with. */
export interface ConnectorParts {
  readonly guard: AddressGuard;
  readonly resolver: NameResolver;
  /** From the lookup to the end of the TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Sees each attempt to connect before it is made; for tests. */
  readonly onDial?: (address: string, port: number) => void;
}

interface Destination {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** Addresses of a name that are tried, at most: each may take a quarter of a second. */
const MAX_ADDRESSES = 16;

/** How long an address may take before the next one is tried beside it (RFC 8305 §5), in milliseconds. */
const ATTEMPT_DELAY_MS = 250;

/**
 * The only way out to other sites, for one client of undici. What it connects to was judged, all of it, by the very
 * answer that is dialled: nothing looks the name up a second time. A literal address takes the same way without a
 * lookup, since Node would never ask one for it.
 *
 * @param signal ends a connection that is being opened, when nobody needs it any more
 */
export function createSiteConnector(
  parts: ConnectorParts,
  signal: AbortSignal,
): buildConnector.connector {
  return ({ hostname, protocol, port }, callback) => {
    const isTls = protocol === 'https:';
    const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
    const destination = { host, port: Number(port) || (isTls ? 443 : 80), isTls };
    const { connectTimeoutMs } = parts;
    const onTimeout = (): Error =>
      siteError(`No connection in ${connectTimeoutMs} ms.`, { reason: 'time', host });
    withDeadline(connectTimeoutMs, signal, onTimeout, async (within) => {
      const addresses = await findAddresses(parts, host, within);
      return dial(parts, destination, addresses, within);
    }).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/**
 * All addresses that a host has, each of them judged: one that may not be dialled refuses them all, since who gives
 * it out has no good reason to.
 */
async function findAddresses(
  { guard, resolver }: ConnectorParts,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const isLiteral = isIP(host) !== 0;
  const addresses = isLiteral ? [host] : await unlessAborted(resolver.resolve(host), signal);
  if (addresses.length === 0) throw siteError('The name has no address.', { reason: 'name', host });
  for (const address of addresses) {
    const fault = guard.findFault(address);
    if (fault === undefined) continue;
    throw siteError(`The address may not be dialled: ${fault}.`, {
      reason: 'address',
      host,
      address,
    });
  }
  return addresses.slice(0, MAX_ADDRESSES);
}

function dial(
  { guard, onDial }: ConnectorParts,
  { host, port, isTls }: Destination,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  const options: TcpNetConnectOpts = {
    host,
    port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_DELAY_MS,
    // Later, as a lookup does: who listens for attempts has to hear of the first one.
    lookup: (_host, _options, done) => queueMicrotask(() => done(null, answers)),
  };
  return new Promise((resolve, reject) => {
    const socket = isTls
      ? tlsConnect({
          ...options,
          // An address has no place in SNI (RFC 6066 §3).
          ...(isIP(host) === 0 && { servername: host }),
          ALPNProtocols: ['http/1.1'],
        })
      : netConnect(options);
    const fail = (error: unknown): void => {
      signal.removeEventListener('abort', abort);
      socket.destroy();
      reject(translate(error, host));
    };
    const abort = (): void => fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    // Of a single address, Node tells of no attempt.
    const [only, ...others] = addresses;
    if (others.length > 0) socket.on('connectionAttempt', (address) => onDial?.(address, port));
    else if (only !== undefined) onDial?.(only, port);
    socket.once('error', fail);
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      const address = socket.remoteAddress ?? '';
      // Once more, by what the system says: nothing but what was judged may have been dialled.
      const fault = guard.findFault(address);
      if (fault !== undefined) {
        fail(siteError(`The address was dialled: ${fault}.`, { reason: 'address', host, address }));
        return;
      }
      signal.removeEventListener('abort', abort);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

function translate(error: unknown, host: string): unknown {
  if (error instanceof MediaError) return error;
  if (error instanceof Error && error.name === 'AbortError') return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isCertificate = /CERT|SELF_SIGNED|ISSUER|LEAF_SIGNATURE|ALTNAME|SSL/.test(code);
  const reason = isCertificate ? 'certificate' : 'connection';
  return siteError('The site could not be reached.', { reason, host, cause: error });
}
