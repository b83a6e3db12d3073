import { once } from 'node:events';
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { MediaError } from '../../contract/errors.ts';
import { unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import { SiteFailure, siteError } from '../../pipeline/site-failure.ts';
import type { AddressGuard } from './guard.ts';
import type { NameResolver, ResolvedName } from './resolver.ts';

export type ConnectToSite = ReturnType<typeof createConnector>;

const MAX_ADDRESSES = 16;

/** Delay before the next address is tried concurrently (RFC 8305 §5). */
const ATTEMPT_DELAY_MS = 250;

/**
 * Creates the only function that connects to sites. It checks all addresses of a name and dials exactly these, without
 * a second lookup. It dials addresses of a late family only if those of the other one are unreachable.
 *
 * @param connectTimeoutMs from the lookup to the end of the TLS handshake
 * @param onDial called before each attempt to connect, for tests
 */
export function createConnector(
  guard: AddressGuard,
  resolver: NameResolver,
  connectTimeoutMs: number,
  onDial?: (address: string, port: number) => void,
) {
  /**
   * @param host name, or address without brackets
   * @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`; `signal.reason`
   */
  return (url: URL, host: string, signal: AbortSignal): Promise<Socket> => {
    const onTimeout = (): Error =>
      siteError(`No connection in ${connectTimeoutMs} ms.`, { reason: 'time', host });
    const connect = (addresses: readonly string[], within: AbortSignal): Promise<Socket> =>
      dial(guard, url, host, checked(guard, host, addresses), within, onDial);
    return withDeadline(connectTimeoutMs, signal, onTimeout, async (within) => {
      const { addresses, late } = await findAddresses(resolver, host, within);
      try {
        return await connect(addresses, within);
      } catch (error) {
        if (late === undefined || !isUnreachable(error)) throw error;
        const others = await unlessAborted(late, within);
        if (others.length === 0) throw error;
        return connect(others, within);
      }
    });
  };
}

async function findAddresses(
  resolver: NameResolver,
  host: string,
  signal: AbortSignal,
): Promise<ResolvedName> {
  if (isIP(host) !== 0) return { addresses: [host] };
  const resolved = await unlessAborted(resolver.resolve(host), signal);
  if (resolved.addresses.length > 0) return resolved;
  throw siteError('The name has no address.', { reason: 'name', host });
}

function checked(
  guard: AddressGuard,
  host: string,
  addresses: readonly string[],
): readonly string[] {
  for (const address of addresses) {
    const rejection = guard.findRejection(address);
    if (rejection === undefined) continue;
    throw siteError(`The address may not be dialled: ${rejection}.`, {
      reason: 'address',
      host,
      address,
    });
  }
  return addresses.slice(0, MAX_ADDRESSES);
}

async function dial(
  guard: AddressGuard,
  url: URL,
  host: string,
  addresses: readonly string[],
  signal: AbortSignal,
  onDial: ((address: string, port: number) => void) | undefined,
): Promise<Socket> {
  signal.throwIfAborted();
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }));
  const options: TcpNetConnectOpts = {
    host,
    port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_DELAY_MS,
    // Asynchronous like a real lookup, so that the listener below receives the first attempt.
    lookup: (_host, _options, done) => queueMicrotask(() => done(null, resolved)),
  };
  const socket = isTls
    ? tlsConnect({
        ...options,
        // SNI does not allow addresses (RFC 6066 §3).
        ...(isIP(host) === 0 && { servername: host }),
        ALPNProtocols: ['http/1.1'],
      })
    : netConnect(options);
  socket.on('error', () => undefined); // an error after an abort must not throw
  // Node emits no event for a single address.
  const [only, ...others] = addresses;
  if (others.length > 0) socket.on('connectionAttempt', (address) => onDial?.(address, port));
  else if (only !== undefined) onDial?.(only, port);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal });
    const address = socket.remoteAddress ?? '';
    const rejection = guard.findRejection(address);
    if (rejection === undefined) return socket;
    throw siteError(`The system dialled a forbidden address: ${rejection}.`, {
      reason: 'address',
      host,
      address,
    });
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw translate(error, host);
  }
}

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
