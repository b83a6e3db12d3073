import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

/** Frames of HTTP/2 (RFC 9113 §4.1, §6), as no well-meaning client would send them. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;

/** What a client of HTTP/2 sends first: the preface and its settings. */
export const greeting = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame('settings', 0, 0),
]);

export function frame(
  type: keyof typeof frameTypes,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(frameTypes[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The header block of a request (RFC 7541): GET, https, and two literals. */
export function headerBlock(path: string): Buffer {
  const literal = (nameIndex: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([nameIndex, value.length]), Buffer.from(value)]);
  return Buffer.concat([Buffer.from([0x82, 0x87]), literal(0x04, path), literal(0x01, 'a')]);
}

/** Opens a connection that has agreed on HTTP/2, and says no more by itself. */
export async function connectFrames(port: number): Promise<TLSSocket> {
  const socket = connect({ port, ALPNProtocols: ['h2'], rejectUnauthorized: false });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Error codes of all GOAWAY frames among the bytes that a server has sent. */
export function farewellsIn(bytes: Buffer): number[] {
  const codes: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const isFarewell = bytes.readUInt8(at + 3) === frameTypes.goaway && at + 17 <= bytes.length;
    if (isFarewell) codes.push(bytes.readUInt32BE(at + 13));
  }
  return codes;
}
