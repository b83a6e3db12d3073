import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Clock, Log } from '../pipeline/ports.ts';

/** Shortest time between two lines about a proxy that is not trusted, in milliseconds. */
const WARNING_PERIOD_MS = 60_000;

/** Prefix of IPv6 that one subscriber has to itself, in groups of 16 bits (RFC 6177). */
const SUBSCRIBER_GROUPS = 4;

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

/**
 * Returns the client that is charged for a request (contract §11): its address, or of IPv6 all of its /64, whose last half a
 * subscriber chooses at will. A mapped address is the IPv4 one in it.
 */
export function rateClientOf(request: FastifyRequest): string {
  // A zone is no part of the address.
  const [bare = ''] = clientAddressOf(request).split('%');
  if (!ipaddr.isValid(bare)) return bare;
  const address = ipaddr.process(bare);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const groups = address.parts.slice(0, SUBSCRIBER_GROUPS).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}

/** Tells the operator of a proxy in front that is not believed: all clients behind it have one share together. */
export class ProxyWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Looks at a request, and says so once a minute at most. */
  look({ raw, ips }: FastifyRequest): void {
    const forwardedFor = raw.headers['x-forwarded-for'];
    if (forwardedFor === undefined) return;
    // Of a peer that is believed, at least one more address is known; unless the header has none.
    const isBelieved = ips !== undefined && ips.length > 1;
    if (isBelieved || !/[^\s,]/.test(String(forwardedFor))) return;
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#warnedAtMs < WARNING_PERIOD_MS) return;
    this.#warnedAtMs = nowMs;
    this.#log.warn(
      { peer: raw.socket.remoteAddress },
      'A peer that TRUST_PROXY does not name sends X-Forwarded-For: if it is a proxy, all clients behind it count as one',
    );
  }
}
