import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

type Network = readonly [first: Address, fixedBits: number];

/** Settings: networks in CIDR notation, such as `10.1.0.0/16`, or single addresses. */
export interface AddressRules {
  readonly allowedNetworks: readonly string[];
  /** Takes precedence over `allowedNetworks`. */
  readonly blockedNetworks: readonly string[];
  /** Prefixes of NAT64 addresses, which are checked by their embedded IPv4 address. */
  readonly nat64Prefixes: readonly string[];
}

/** Network of IPv6 addresses that embed IPv4 addresses, and how to read these. */
interface Carrier {
  readonly network: Network;
  readonly read: (bytes: readonly number[]) => readonly (readonly number[])[];
}

const carriers: readonly Carrier[] = [
  // RFC 4291 §2.5.5.1, "compatible"; includes `::` and `::1`, which their own ranges reject.
  carrier('::/96', at(12)),
  // RFC 4291 §2.5.5.2, "mapped", and its predecessor, which translators use (RFC 6145 §2).
  carrier('::ffff:0:0/96', at(12)),
  carrier('::ffff:0:0:0/96', at(12)),
  // NAT64: the well-known prefix (RFC 6052 §2.1), and the local one (RFC 8215), whose length may be 48 or more.
  carrier('64:ff9b::/96', at(12)),
  carrier('64:ff9b:1::/48', (bytes) => [48, 56, 64, 96].map((bits) => readEmbedded(bytes, bits))),
  // 6to4 (RFC 3056 §2).
  carrier('2002::/16', at(2)),
  // Teredo (RFC 4380 §4): its server, and the client with all bits inverted.
  carrier('2001::/32', (bytes) => [
    bytes.slice(4, 8),
    bytes.slice(12, 16).map((byte) => byte ^ 0xff),
  ]),
];

const globalUnicast: Network = ipaddr.IPv6.parseCIDR('2000::/3'); // RFC 4291 §2.4

/** Ranges that ipaddr.js lacks: Azure's platform address, which only looks public, and the dummy prefix (RFC 9780). */
const furtherNetworks: readonly Network[] = ['168.63.129.16/32', '100:0:0:1::/64'].map(
  parseNetwork,
);

/** Ranges of ipaddr.js whose packets reach the embedded IPv4 address, so only that is checked. */
const translatedRanges: ReadonlySet<string> = new Set(['6to4', 'teredo', 'rfc6052']);

/** Prefix of local NAT64 (RFC 8215), rejected unless configured. */
const localTranslation: Network = ipaddr.IPv6.parseCIDR('64:ff9b:1::/48');

/**
 * Decides which addresses may be dialled (contract §8): public unicast whose embedded addresses are public, too. Not
 * covered: public addresses that the operator routes privately; use `blockedNetworks` or a firewall for them.
 */
export class AddressGuard {
  readonly #allowed: readonly Network[];
  readonly #blocked: readonly Network[];
  readonly #nat64: readonly Network[];

  constructor({ allowedNetworks, blockedNetworks, nat64Prefixes }: AddressRules) {
    this.#allowed = allowedNetworks.map(parseNetwork);
    this.#blocked = blockedNetworks.map(parseNetwork);
    this.#nat64 = nat64Prefixes.map(parseNetwork);
  }

  /** Returns why an address may not be dialled, in a few words. @param text IPv6 without brackets */
  findRejection(text: string): string | undefined {
    const address = readAddress(text);
    return address === undefined ? 'no address' : this.#checkAddress(address);
  }

  #checkAddress(address: Address): string | undefined {
    const embedded = address instanceof ipaddr.IPv6 ? findEmbedded(address, this.#nat64) : [];
    if ([address, ...embedded].some((it) => isInAny(it, this.#blocked))) return 'blocked network';
    if (isInAny(address, this.#allowed)) return undefined;
    if (isInAny(address, furtherNetworks)) return 'reserved';
    if (address instanceof ipaddr.IPv4) return findSpecialRange(address);
    const prefix = this.#nat64.find((network) => isIn(address, network));
    if (prefix !== undefined) {
      return this.#checkAddress(
        new ipaddr.IPv4([...readEmbedded(address.toByteArray(), prefix[1])]),
      );
    }
    const special = embedded.map(findSpecialRange).find((it) => it !== undefined);
    if (special !== undefined) return `${special} in ${address.range()}`;
    if (isIn(address, localTranslation)) return address.range();
    if (translatedRanges.has(address.range())) return undefined;
    return findSpecialRange(address) ?? (isIn(address, globalUnicast) ? undefined : 'reserved');
  }
}

/**
 * Parses an address like the system. ipaddr.js also accepts `0x7f.1` and `010.1.1.1`, and would read `::8.8.8.8` as a
 * mapped address, so it receives IPv6 in the format of the URL parser.
 */
function readAddress(text: string): Address | undefined {
  if (isIP(text) === 4) return ipaddr.IPv4.parse(text);
  if (isIP(text) !== 6 || !URL.canParse(`http://[${text}]/`)) return undefined;
  const address = ipaddr.IPv6.parse(new URL(`http://[${text}]/`).hostname.slice(1, -1));
  // The system treats mapped addresses as IPv4.
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

function parseNetwork(text: string): Network {
  const cidr = text.includes('/') ? text : `${text}/${isIP(text) === 4 ? 32 : 128}`;
  const [address, bits] = ipaddr.parseCIDR(cidr);
  // Rules for mapped addresses apply to IPv4.
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96;
  return isMapped ? [address.toIPv4Address(), bits - 96] : [address, bits];
}

function isInAny(address: Address, networks: readonly Network[]): boolean {
  return networks.some((network) => isIn(address, network));
}

function findSpecialRange(address: Address): string | undefined {
  const range = address.range();
  return range === 'unicast' ? undefined : range;
}

function isIn(address: Address, [base, bits]: Network): boolean {
  return address.kind() === base.kind() && address.match(base, bits);
}

/** Returns the IPv4 addresses in an IPv6 address, to which a router may forward packets. */
function findEmbedded(
  address: ipaddr.IPv6,
  nat64Prefixes: readonly Network[],
): readonly ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  const found = carriers
    .filter(({ network }) => isIn(address, network))
    .flatMap(({ read }) => read(bytes));
  for (const prefix of nat64Prefixes) {
    if (isIn(address, prefix)) found.push(readEmbedded(bytes, prefix[1]));
  }
  // An ISATAP interface identifier, below any prefix (RFC 5214 §6.1): [02]00:5efe and the address.
  const [first, second, third, fourth] = bytes.slice(8, 12);
  const isIsatap = ((first ?? 0) & 0xfd) === 0 && second === 0 && third === 0x5e && fourth === 0xfe;
  if (isIsatap) found.push(bytes.slice(12, 16));
  return found.map((octets) => new ipaddr.IPv4([...octets]));
}

/** Reads the IPv4 address after a NAT64 prefix (RFC 6052 §2.2), without the byte of bits 64 to 71. */
function readEmbedded(bytes: readonly number[], prefixBits: number): readonly number[] {
  if (prefixBits === 96) return bytes.slice(12, 16);
  return bytes
    .map((byte, index) => ({ byte, index }))
    .slice(prefixBits / 8)
    .filter(({ index }) => index !== 8)
    .slice(0, 4)
    .map(({ byte }) => byte);
}

function carrier(network: string, read: Carrier['read']): Carrier {
  return { network: ipaddr.IPv6.parseCIDR(network), read };
}

function at(first: number): Carrier['read'] {
  return (bytes) => [bytes.slice(first, first + 4)];
}
