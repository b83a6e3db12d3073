import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';
import type { Clock, Log } from '../pipeline/ports.ts';

/** Shortest time between two equal warnings about a proxy, in milliseconds. */
const WARNING_PERIOD_MS = 60_000;

/** Prefix of IPv6 that one subscriber has, in groups of 16 bits (RFC 6177). */
const SUBSCRIBER_GROUPS = 4;

/** Lists the addresses on the way of a request, the peer's first, up to the first one that is not trusted. */
export type ListAddresses = (request: IncomingMessage) => readonly string[];

/** Lists addresses by the `X-Forwarded-For` of `trusted` proxies: all, none, or these addresses and networks. */
export function trustProxies(trusted: boolean | string[]): ListAddresses {
  const trusts = typeof trusted === 'boolean' ? () => trusted : proxyAddr.compile(trusted);
  return ({ headers, socket }) => {
    const addresses = [socket.remoteAddress ?? ''];
    const reported = String(headers['x-forwarded-for'] ?? '').split(',');
    for (let entry = reported.pop(); entry !== undefined; entry = reported.pop()) {
      if (!trusts(addresses.at(-1) ?? '', addresses.length - 1)) break;
      const address = readAddress(entry.trim());
      if (address !== '') addresses.push(address);
    }
    return addresses;
  };
}

/** Returns an entry without its port and brackets, which some load balancers add; other texts as they are. */
function readAddress(entry: string): string {
  const { v4, v6 } =
    /^(?:(?<v4>[\d.]+):\d+|\[(?<v6>[\da-f:.]+)\](?::\d+)?)$/i.exec(entry)?.groups ?? {};
  return v4 ?? v6 ?? entry;
}

/**
 * Returns the leftmost valid address that trusted proxies report; skips entries that are not IP addresses, since anybody
 * can write anything into `X-Forwarded-For`, and those with a zone, which has a meaning only on the machine that wrote it.
 */
export function clientAddressOf(addresses: readonly string[]): string {
  return addresses.findLast((address, index) => index === 0 || isAddress(address)) ?? '';
}

function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
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

const UNTRUSTED =
  'A peer that TRUST_PROXY does not name sends X-Forwarded-For: if it is a proxy, all clients behind it count as one';
const UNREADABLE =
  'A trusted proxy sends an X-Forwarded-For in which the client is not an IP address: all such clients count as one';

/** Longest entry that the log shows, in characters. */
const MAX_ENTRY_LENGTH = 64;

/** Warns of a proxy in front whose clients share one rate limit, since they cannot be told apart. */
export class ProxyWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #warnedAtMs = new Map<string, number>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Checks a request; warns once a minute at most of each fault. */
  check({ headers, socket }: IncomingMessage, addresses: readonly string[]): void {
    const { remoteAddress: peer } = socket;
    const client = addresses.at(-1) ?? '';
    // A trusted peer has reported at least one more address, unless the header is empty.
    if (addresses.length > 1) {
      if (isAddress(client)) return;
      this.#warn(UNREADABLE, { peer, entry: client.slice(0, MAX_ENTRY_LENGTH) });
    } else if (/[^\s,]/.test(String(headers['x-forwarded-for'] ?? ''))) {
      this.#warn(UNTRUSTED, { peer });
    }
  }

  #warn(message: string, details: object): void {
    const nowMs = this.#clock.nowMs();
    const warnedAtMs = this.#warnedAtMs.get(message) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - warnedAtMs < WARNING_PERIOD_MS) return;
    this.#warnedAtMs.set(message, nowMs);
    this.#log.warn(details, message);
  }
}
