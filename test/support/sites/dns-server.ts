import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { isIPv4, isIPv6 } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server of names on a free port of this machine. */
export interface DnsServer {
  /** As a resolver takes it: `127.0.0.1:5353`. */
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** The types of records that it has (RFC 1035 §3.2.2, RFC 3596 §2.1), with how an address is written. */
const types: Readonly<Record<number, (address: string) => Buffer | undefined>> = {
  1: (address) => (isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : undefined),
  28: (address) => (isIPv6(address) ? bytesOfIpv6(address) : undefined),
};

/**
 * Starts a DNS server (RFC 1035 §4.1) that knows the addresses of some names, and of all others says that there are
 * none.
 */
export async function startDnsServer(
  names: Readonly<Record<string, readonly string[]>>,
): Promise<DnsServer> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    socket.send(answer(query, names), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    stop: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

/** The same, until the end of the test. */
export async function useDnsServer(
  names: Readonly<Record<string, readonly string[]>>,
): Promise<DnsServer> {
  const server = await startDnsServer(names);
  onTestFinished(server.stop);
  return server;
}

function answer(query: Buffer, names: Readonly<Record<string, readonly string[]>>): Buffer {
  const labels: string[] = [];
  let at = 12; // the head
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = query.readUInt16BE(at + 1);
  const question = query.subarray(12, at + 5);
  const addresses = names[labels.join('.').toLowerCase()];
  const records = (addresses ?? []).flatMap((address) => types[type]?.(address) ?? []);
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  // A response, by who knows, with recursion; no such name, where there is none.
  head.writeUInt16BE(addresses === undefined ? 0x8583 : 0x8580, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, question, ...records.map((data) => formatRecord(type, data))]);
}

/** A record of the name in the question, that may be kept for no time. */
function formatRecord(type: number, data: Buffer): Buffer {
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(type, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}

/** An address without an IPv4 one at its end. */
function bytesOfIpv6(address: string): Buffer {
  const [before = '', after] = address.split('::');
  const groupsOf = (text = ''): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [head, tail] = [groupsOf(before), groupsOf(after)];
  const groups = [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
