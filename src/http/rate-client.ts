import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Clock, Log } from '../pipeline/ports.ts';
import { clientAddressOf } from './client-address.ts';

/** How often the log names a proxy that is not believed, in milliseconds. */
const WARNING_PERIOD_MS = 60_000;

/** Prefix of IPv6 that one subscriber has to itself, in groups of 16 bits (RFC 6177). */
const SUBSCRIBER_GROUPS = 4;

/** Who is charged for a request: the client that the proxies tell which are believed. */
export function rateClientOf(request: FastifyRequest): string {
  return subscriberOf(clientAddressOf(request));
}

/**
 * Who an address stands for (contract §11): itself, or of IPv6 all of its /64, whose last half a subscriber chooses
 * at will. A mapped address is the IPv4 one in it.
 */
export function subscriberOf(address: string): string {
  // A zone is no part of the address.
  const [bare = ''] = address.split('%');
  if (!ipaddr.isValid(bare)) return bare;
  const parsed = ipaddr.process(bare);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const groups = parsed.parts.slice(0, SUBSCRIBER_GROUPS).map((group) => group.toString(16));
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
