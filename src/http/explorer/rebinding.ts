import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** Headers and socket of a request. */
interface Arrival {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly localAddress?: string | undefined };
}

/**
 * Whether a request came to this machine's own address under a name that anybody may have pointed there: a page
 * of `evil.example`, whose name leads to 127.0.0.1 once it is loaded, is of the same origin as the service there,
 * and would read it in the browser of a person at this machine (DNS rebinding). Without suspicion are
 * `localhost`, what ends with `.localhost` (RFC 6761 §6.3), and addresses: no one can point those elsewhere.
 *
 * An address that Node does not know counts as this machine's own. Not covered are addresses of a network, where
 * a name is the usual way.
 */
export function isRebound({ headers, socket }: Arrival): boolean {
  if (socket.localAddress !== undefined && !isLoopback(socket.localAddress)) return false;
  return headers.host === undefined || !isOfThisMachine(headers.host.replace(/:\d*$/, ''));
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./i.test(address);
}

/** @param host without a port */
function isOfThisMachine(host: string): boolean {
  const address = /^\[(.*)\]$/.exec(host)?.[1] ?? host;
  return /^(?:[^.]+\.)*localhost$/i.test(host) || isIP(address) !== 0;
}
