import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A network: its first address, and the number of fixed bits. */
export type Network = readonly [Address, number];

/** Whether an address is in a network; false for different families. */
export function isIn(address: Address, [base, bits]: Network): boolean {
  return address.kind() === base.kind() && address.match(base, bits);
}

/** A network of IPv6 addresses that contain IPv4 addresses, and how to read these. */
interface Carrier {
  readonly network: Network;
  readonly read: (bytes: readonly number[]) => readonly (readonly number[])[];
}

/** Carriers by the names of their registry. */
const carriers: readonly Carrier[] = [
  // RFC 4291 §2.5.5.1, "compatible"; includes `::` and `::1`, which are refused by their own ranges.
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

/**
 * Returns the IPv4 addresses that an IPv6 address contains, by all rules that routers and hosts know: a router may
 * forward its packets to one of these.
 *
 * @param nat64Prefixes of the operator's own translators (RFC 6052)
 */
export function findCarried(
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

/** Returns the IPv4 address to which a translator with this prefix forwards packets. */
export function readTranslated(address: ipaddr.IPv6, [, prefixBits]: Network): ipaddr.IPv4 {
  return new ipaddr.IPv4([...readEmbedded(address.toByteArray(), prefixBits)]);
}

/** Reads the IPv4 address behind a translator's prefix (RFC 6052 §2.2): the byte of bits 64 to 71 is not part of it. */
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
