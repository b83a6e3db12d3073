import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';
import type { Clock, Log } from '../pipeline/ports.ts';

/** Shortest time between two warnings about a proxy that is not trusted, in milliseconds. */
const WARNING_PERIOD_MS = 60_000;

/** Prefix of IPv6 that one subscriber has, in groups of 16 bits (RFC 6177). */
const SUBSCRIBER_GROUPS = 4;

/** Lists the addresses on the way of a request, the peer's first, up to the first one that is not trusted. */
export type ListAddresses = (request: IncomingMessage) => readonly string[];

/** Lists addresses by the `X-Forwarded-For` of `trusted` proxies: all, none, or these addresses and networks. */
export function trustProxies(trusted: boolean | string[]): ListAddresses {
  const trusts = typeof trusted === 'boolean' ? () => trusted : proxyAddr.compile(trusted);
  return (request) => proxyAddr.all(request, trusts);
}

/**
 * Returns the leftmost valid address that trusted proxies report; skips entries that are not IP addresses, since anybody
 * can write anything into `X-Forwarded-For`, and those with a zone, which has a meaning only on the machine that wrote it.
 */
export function clientAddressOf(addresses: readonly string[]): string {
  const isAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes('%');
  return addresses.findLast((address, index) => index === 0 || isAddress(address)) ?? '';
}

/**
 * Returns the client that is charged for a request (contract §11): its address, or for IPv6 its /64, whose last half a
 * subscriber chooses at will. A mapped address counts as the IPv4 address in it.
 */
export function rateClientOf(addresses: readonly string[]): string {
  const [bare = ''] = clientAddressOf(addresses).split('%'); // without the zone
  if (!ipaddr.isValid(bare)) return bare;
  const address = ipaddr.process(bare);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const groups = address.parts.slice(0, SUBSCRIBER_GROUPS).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}

/** Warns of a proxy in front that is not trusted: all clients behind it share one rate limit. */
export class ProxyWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Checks a request; warns once a minute at most. */
  check({ headers, socket }: IncomingMessage, addresses: readonly string[]): void {
    // A trusted peer has reported at least one more address, unless the header is empty.
    if (addresses.length > 1 || !/[^\s,]/.test(String(headers['x-forwarded-for'] ?? ''))) return;
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#warnedAtMs < WARNING_PERIOD_MS) return;
    this.#warnedAtMs = nowMs;
    this.#log.warn(
      { peer: socket.remoteAddress },
      'A peer that TRUST_PROXY does not name sends X-Forwarded-For: if it is a proxy, all clients behind it count as one',
    );
  }
}
