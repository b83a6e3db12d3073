import { once } from 'node:events';
import { connect } from 'node:net';
import { readResponse, type WireResponse } from '../support/http/wire-response.ts';

/** Longest that a connection may take from its first byte to its last. */
const DEADLINE_MS = 15_000;

/** A connection to the service under test. */
export interface Wire {
  /** Sends bytes, cut into pieces at these positions. */
  readonly send: (bytes: Buffer, cuts?: readonly number[]) => Promise<void>;
  /** Says that nothing more will be sent. */
  readonly end: () => void;
  /**
   * The next response; `undefined` where the connection ends before its first byte or, if it may be cut
   * off, before its last.
   */
  readonly next: (isHead: boolean, mayBeCut?: boolean) => Promise<WireResponse | undefined>;
  /** All that comes until the service hangs up. */
  readonly rest: () => Promise<Buffer>;
  readonly close: () => void;
}

/** Connects; every wait on the connection fails once its deadline is over. */
export async function openWire(port: number): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  let received: Buffer = Buffer.alloc(0);
  let isEnded = false;
  let wake: () => void = () => undefined;
  const finish = (): void => {
    isEnded = true;
    wake();
  };
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  socket.on('end', finish);
  socket.on('close', finish);
  socket.on('error', () => undefined); // a connection reset is an end like any other
  await once(socket, 'connect');
  const deadline = performance.now() + DEADLINE_MS;

  const more = async (): Promise<void> => {
    const leftMs = deadline - performance.now();
    let timer: NodeJS.Timeout | undefined;
    const isLate = await new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(true), Math.max(0, leftMs));
      wake = () => resolve(false);
      if (isEnded) resolve(false);
    });
    clearTimeout(timer);
    if (isLate)
      throw new Error(
        `a hang: nothing more after ${JSON.stringify(received.toString('latin1').slice(0, 200))}`,
      );
  };

  return {
    send: async (bytes, cuts = []) => {
      let from = 0;
      for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
        if (cut <= from || cut > bytes.length || socket.destroyed) continue;
        socket.write(bytes.subarray(from, cut));
        from = cut;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    end: () => socket.end(),
    next: async (isHead, mayBeCut = false) => {
      while (true) {
        const read = readResponse(received, isHead);
        if (read !== undefined) {
          received = read.rest;
          return read.response;
        }
        if (isEnded) {
          if (received.length === 0 || mayBeCut) return undefined;
          throw new Error(
            `a response cut off: ${JSON.stringify(received.toString('latin1').slice(0, 200))}`,
          );
        }
        await more();
      }
    },
    rest: async () => {
      while (!isEnded) await more();
      return received;
    },
    close: () => socket.destroy(),
  };
}

/** A script that sends the same bytes again. */
export function scriptOf(port: number, bytes: Buffer): string {
  const readable = JSON.stringify(bytes.subarray(0, 4_000).toString('latin1'));
  return [
    `# ${readable}${bytes.length > 4_000 ? ` … ${bytes.length} bytes` : ''}`,
    `node -e 'const s = require("net").connect(${port}, "127.0.0.1"); s.pipe(process.stdout); s.write(Buffer.from("${bytes.toString('base64')}", "base64"))'`,
  ].join('\n');
}
