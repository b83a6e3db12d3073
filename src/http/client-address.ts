import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * The address of the client, as the proxies that are believed (`TRUST_PROXY`) tell it: the farthest one that they
 * tell. What is no address is passed over, since anybody can write anything into `X-Forwarded-For`.
 */
export function clientAddressOf({ ip, ips }: FastifyRequest): string {
  // Nearest first; the first is that of the connection itself.
  return ips?.findLast((address, index) => index === 0 || isAddress(address)) ?? ip;
}

/** Without a zone: that is a name within the machine which it was written on, and as long as one likes. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}
