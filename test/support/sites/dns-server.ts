import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { atEnd } from '../at-end.ts';

/** Records by name: addresses, or another name, of which the key is an alias. */
type DnsNames = Readonly<Record<string, readonly string[]>>;

/** Delays the response to a query for an IP version. */
type Hold = (version: number) => Promise<unknown> | undefined;

/** IP versions by type of the address record (RFC 1035 §3.2.2, RFC 3596 §2.1). */
const types: Readonly<Record<number, number>> = { 1: 4, 28: 6 };

const CNAME = 5;
/** Maximum number of aliases in one response; ends a loop of aliases. */
const MAX_ALIASES = 16;

/** Starts a DNS server (RFC 1035 §4.1). Like a resolver, it follows aliases; unknown names get NXDOMAIN. */
export async function useDnsServer(names: DnsNames, hold?: Hold): Promise<string> {
  const socket = createSocket('udp4');
  let isOpen = true;
  atEnd(() => {
    isOpen = false;
    socket.close();
  });
  socket.on('message', async (query, { port, address }) => {
    const { version = 0 } = readQuestion(query);
    await hold?.(version);
    if (isOpen) socket.send(answer(query, names), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return `127.0.0.1:${socket.address().port}`;
}

/** Reads the question of a query: a name, and a record type. */
function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = 12; // the head
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = query.readUInt16BE(at + 1);
  const name = labels.join('.').toLowerCase();
  return { name, type, version: types[type], bytes: query.subarray(12, at + 5) };
}

function answer(query: Buffer, names: DnsNames): Buffer {
  const { name, type, bytes: question } = readQuestion(query);
  const records = recordsOf(name, type, names);
  // Flags: authoritative response with recursion, and NXDOMAIN for an unknown name.
  const flags = [0x85, names[name] === undefined ? 0x83 : 0x80];
  const head = [...query.subarray(0, 2), ...flags, 0, 1, 0, records.length, 0, 0, 0, 0];
  return Buffer.concat([Buffer.from(head), question, ...records]);
}

/** Returns the records of a name, and of the names that it is an alias of. */
function recordsOf(owner: string, type: number, names: DnsNames, depth = 0): readonly Buffer[] {
  if (depth === MAX_ALIASES) return [];
  return (names[owner] ?? []).flatMap((text) => {
    const version = isIP(text);
    if (version === 0) {
      const alias = formatRecord(owner, CNAME, formatName(text));
      return [alias, ...recordsOf(text, type, names, depth + 1)];
    }
    if (version !== types[type]) return [];
    return [formatRecord(owner, type, Buffer.from(ipaddr.parse(text).toByteArray()))];
  });
}

/** Formats a record with a TTL of 0. */
function formatRecord(owner: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([formatName(owner), fixed, data]);
}

function formatName(name: string): Buffer {
  const labels = name.split('.').map((label) => String.fromCharCode(label.length) + label);
  return Buffer.from(`${labels.join('')}\0`, 'latin1');
}
