import { once } from 'node:events';
import { connect } from 'node:net';

/** A response as its bytes say. */
export interface WireResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** Longest that a connection may take from its first byte to its last. */
const DEADLINE_MS = 15_000;

/**
 * Reads one final response off the front of `bytes`, interim ones (1xx) before it included.
 *
 * @param isHead whether its request was a HEAD, so that no body follows whatever the headers say
 * @returns the response and what follows it; `undefined` while it is not complete
 * @throws Error for anything that is not exactly HTTP/1.1
 */
export function readResponse(
  bytes: Buffer,
  isHead: boolean,
):
  | { readonly response: WireResponse; readonly rest: Buffer; readonly interim: number }
  | undefined {
  let [from, interim] = [0, 0];
  while (true) {
    const end = bytes.indexOf('\r\n\r\n', from);
    if (end < 0) return undefined;
    const { status, headers } = readHead(bytes.subarray(from, end).toString('latin1'));
    from = end + 4;
    if (status === 100) {
      if (headers.size > 0) throw new Error('an interim response with headers');
      interim += 1;
      continue;
    }
    const length = lengthOf(status, headers, isHead, bytes.subarray(from));
    if (length === undefined || bytes.length < from + length) return undefined;
    const body = bytes.subarray(from, from + length);
    return { response: { status, headers, body }, rest: bytes.subarray(from + length), interim };
  }
}

function readHead(head: string): Pick<WireResponse, 'status' | 'headers'> {
  const [statusLine = '', ...lines] = head.split('\r\n');
  const status = /^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z' -]*$/.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`no status line: ${JSON.stringify(statusLine)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([A-Za-z0-9-]+): ([ -~]+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new Error(`no header: ${JSON.stringify(line)}`);
    if (headers.has(name.toLowerCase())) throw new Error(`a header twice: ${line}`);
    headers.set(name.toLowerCase(), value);
  }
  return { status: Number(status), headers };
}

function lengthOf(
  status: number,
  headers: ReadonlyMap<string, string>,
  isHead: boolean,
  body: Buffer,
): number | undefined {
  const length = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (length !== undefined && !/^(?:0|[1-9]\d*)$/.test(length))
    throw new Error(`length: ${length}`);
  if (isHead || status === 204 || status === 304) {
    if (status === 204 && (length ?? coding) !== undefined) throw new Error('a 204 with a length');
    return 0;
  }
  if (coding === undefined) {
    if (length === undefined) throw new Error(`a response ${status} without a length`);
    return Number(length);
  }
  // Nothing here is sent in chunks; but the empty responses of Node's own are said so.
  if (coding !== 'chunked' || length !== undefined) throw new Error(`coding: ${coding}, ${length}`);
  if (body.length < 5) return undefined;
  if (body.subarray(0, 5).toString('latin1') !== '0\r\n\r\n') throw new Error('a chunked response');
  return 5;
}

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
  readonly next: (
    isHead: boolean,
    mayBeCut?: boolean,
  ) => Promise<{ response: WireResponse; interim: number } | undefined>;
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
          return read;
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
