import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';
import type { Clock, Log } from '../pipeline/ports.ts';

const WARNING_PERIOD_MS = 60_000;

/** IPv6 prefix of one subscriber, in groups of 16 bits (RFC 6177). */
const SUBSCRIBER_GROUPS = 4;

/** Lists the addresses on a request's path: the peer first, the first untrusted address last. */
export type ListAddresses = (request: IncomingMessage) => readonly string[];

/** Creates a reader of `X-Forwarded-For` that trusts all proxies, none, or these addresses and networks. */
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

function readAddress(entry: string): string {
  const { v4, v6 } =
    /^(?:(?<v4>[\d.]+):\d+|\[(?<v6>[\da-f:.]+)\](?::\d+)?)$/i.exec(entry)?.groups ?? {};
  return v4 ?? v6 ?? entry;
}

/**
 * Returns the leftmost IP address that trusted proxies report. Skips text from clients that is not an address, and
 * addresses with a zone, which only the machine that wrote it can interpret.
 */
export function clientAddressOf(addresses: readonly string[]): string {
  return addresses.findLast((address, index) => index === 0 || isAddress(address)) ?? '';
}

function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/**
 * Returns the client to charge for a request (contract §11): its IPv4 address, mapped or not, or its IPv6 /64, since
 * subscribers choose the lower half freely.
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
  'ignoring X-Forwarded-For from an untrusted peer; if it is your proxy, add it to TRUST_PROXY';
const UNREADABLE = 'X-Forwarded-For of a trusted proxy has no IP address of the client';

const MAX_ENTRY_LENGTH = 64;

/**
 * Creates a check that warns if all clients of a proxy share one rate limit, because the proxy does not report their
 * addresses. It logs each kind of warning at most once a minute.
 */
export function createProxyWatch(clock: Clock, log: Log) {
  const loggedAtMs = new Map<string, number>();
  const warn = (message: string, details: object): void => {
    const nowMs = clock.nowMs();
    if (nowMs - (loggedAtMs.get(message) ?? -Infinity) < WARNING_PERIOD_MS) return;
    loggedAtMs.set(message, nowMs);
    log.warn(details, message);
  };
  return ({ headers, socket }: IncomingMessage, addresses: readonly string[]): void => {
    const { remoteAddress: peer } = socket;
    const client = addresses.at(-1) ?? '';
    // A trusted peer adds at least one address, unless the header is empty.
    if (addresses.length > 1) {
      if (!isAddress(client)) warn(UNREADABLE, { peer, entry: client.slice(0, MAX_ENTRY_LENGTH) });
    } else if (/[^\s,]/.test(String(headers['x-forwarded-for'] ?? ''))) {
      warn(UNTRUSTED, { peer });
    }
  };
}
