import { once } from 'node:events';
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { MediaError } from '../../contract/errors.ts';
import { unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import { SiteFailure, siteError } from '../../pipeline/site-failure.ts';
import type { AddressGuard } from './guard.ts';
import type { NameResolver, ResolvedName } from './resolver.ts';

/** Parts of a connector. */
export interface ConnectorParts {
  readonly guard: AddressGuard;
  readonly resolver: NameResolver;
  /** Longest time from the lookup to the end of the TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Called before each attempt to connect; for tests. */
  readonly onDial?: (address: string, port: number) => void;
}

const MAX_ADDRESSES = 16;

/** Delay before the next address is tried concurrently (RFC 8305 §5), in milliseconds. */
const ATTEMPT_DELAY_MS = 250;

/**
 * Opens a connection to a site: the only way to connect to one. All addresses of a name are checked, and exactly these
 * are dialled: no second lookup follows. A literal address takes the same path without a lookup. Addresses of a late
 * family are dialled only if those of the other one cannot be reached.
 *
 * @param host a name, or an address without brackets
 * @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`; or `signal.reason`
 */
export function connectToSite(
  parts: ConnectorParts,
  url: URL,
  host: string,
  signal: AbortSignal,
): Promise<Socket> {
  const { connectTimeoutMs } = parts;
  const onTimeout = (): Error =>
    siteError(`No connection in ${connectTimeoutMs} ms.`, { reason: 'time', host });
  return withDeadline(connectTimeoutMs, signal, onTimeout, async (within) => {
    const { addresses, late } = await findAddresses(parts, host, within);
    try {
      return await dial(parts, url, host, checked(parts, host, addresses), within);
    } catch (error) {
      if (late === undefined || !isUnreachable(error)) throw error;
      const others = await unlessAborted(late, within);
      if (others.length === 0) throw error;
      return dial(parts, url, host, checked(parts, host, others), within);
    }
  });
}

async function findAddresses(
  { resolver }: ConnectorParts,
  host: string,
  signal: AbortSignal,
): Promise<ResolvedName> {
  if (isIP(host) !== 0) return { addresses: [host] };
  const resolved = await unlessAborted(resolver.resolve(host), signal);
  if (resolved.addresses.length > 0) return resolved;
  throw siteError('The name has no address.', { reason: 'name', host });
}

/** @throws MediaError `ORIGIN_ERROR` if one of the addresses may not be dialled */
function checked(
  { guard }: ConnectorParts,
  host: string,
  addresses: readonly string[],
): readonly string[] {
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

async function dial(
  { guard, onDial }: ConnectorParts,
  url: URL,
  host: string,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  const options: TcpNetConnectOpts = {
    host,
    port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_DELAY_MS,
    // Asynchronous like a lookup: a listener for attempts must receive the first one.
    lookup: (_host, _options, done) => queueMicrotask(() => done(null, answers)),
  };
  const socket = isTls
    ? tlsConnect({
        ...options,
        // SNI does not allow addresses (RFC 6066 §3).
        ...(isIP(host) === 0 && { servername: host }),
        ALPNProtocols: ['http/1.1'],
      })
    : netConnect(options);
  socket.on('error', () => undefined); // an error after an abort has no other listener
  // Node emits no attempt for a single address.
  const [only, ...others] = addresses;
  if (others.length > 0) socket.on('connectionAttempt', (address) => onDial?.(address, port));
  else if (only !== undefined) onDial?.(only, port);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal });
    const address = socket.remoteAddress ?? '';
    // A second check, of the address that the system reports: only checked addresses may be dialled.
    const fault = guard.findFault(address);
    if (fault === undefined) return socket;
    throw siteError(`The address was dialled: ${fault}.`, { reason: 'address', host, address });
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw translate(error, host);
  }
}

/** Whether no connection could be opened, whatever the site would have sent. */
function isUnreachable(error: unknown): boolean {
  const cause = error instanceof MediaError ? error.cause : undefined;
  return cause instanceof SiteFailure && cause.details.reason === 'connection';
}

function translate(error: unknown, host: string): unknown {
  if (error instanceof MediaError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isCertificate = /CERT|SELF_SIGNED|ISSUER|LEAF_SIGNATURE|ALTNAME|SSL/.test(code);
  const reason = isCertificate ? 'certificate' : 'connection';
  return siteError('The site could not be reached.', { reason, host, cause: error });
}
