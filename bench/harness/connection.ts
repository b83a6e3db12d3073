import { connect, type Socket } from 'node:net';

/** After this long without a byte, a response counts as failed, in milliseconds. */
const SILENCE_MS = 90_000;

/** Each connection reads into one buffer of its own, over and over: large bodies cost it the reading alone. */
const READ_BYTES = 64 * 1024;

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Connections that have rested so long are closed, in milliseconds: Node closes them after 5 seconds, and may do so just
 * as a request is sent (RFC 9112 §9.5).
 */
const KEEP_IDLE_MS = 4_000;

/** A response, as far as a load looks at it. */
export interface Received {
  /** 0 where no whole response came. */
  readonly status: number;
  readonly isHit: boolean;
  readonly retryAfterSeconds: number | undefined;
  /** Of the body. */
  readonly bytes: number;
}

const FAILED: Received = { status: 0, isHit: false, retryAfterSeconds: undefined, bytes: 0 };

/**
 * A connection with one request on its way at a time. As lean as it can be, since it shares the machine with the
 * server: no parser but for the head; a response without `Content-Length` counts as failed.
 */
class Connection {
  readonly #socket: Socket;
  #settle: ((received: Received) => void) | undefined;
  #received: Received | undefined;
  #partOfHead = Buffer.of();
  #bytesLeft = 0;

  constructor(server: { readonly host: string; readonly port: number }) {
    const callback = (bytesRead: number, { buffer, byteOffset }: Uint8Array): boolean => {
      this.#take(Buffer.from(buffer, byteOffset, bytesRead));
      return true;
    };
    const onread = { buffer: Buffer.alloc(READ_BYTES), callback };
    this.#socket = connect({ ...server, noDelay: true, onread });
    this.#socket.on('timeout', () => this.#socket.destroy());
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#settle?.(FAILED));
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  /** Sends a request; resolves at the last byte of its response, or at the end of the connection. */
  request(head: string): Promise<Received> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#socket.setTimeout(SILENCE_MS);
      this.#socket.write(head, 'latin1');
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#received === undefined) {
      const bytes = Buffer.concat([this.#partOfHead, chunk]);
      const headEnd = bytes.indexOf(HEAD_END);
      this.#partOfHead = headEnd < 0 ? bytes : Buffer.of();
      if (headEnd >= 0) this.#readHead(bytes.toString('latin1', 0, headEnd));
      this.#bytesLeft -= headEnd < 0 ? 0 : bytes.length - headEnd - HEAD_END.length;
    } else this.#bytesLeft -= chunk.length;
    const received = this.#received;
    if (received === undefined || this.#bytesLeft > 0) return;
    this.#received = undefined;
    this.#socket.setTimeout(KEEP_IDLE_MS);
    this.#settle?.(received);
  }

  #readHead(head: string): void {
    const status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) this.close();
    const retryAfter = /\r\nretry-after: (\d+)/i.exec(head)?.[1];
    const bytes = Number(length ?? Number.POSITIVE_INFINITY);
    this.#bytesLeft = bytes;
    this.#received = {
      status,
      isHit: /\r\ncache-status: [^\r]*hit/i.test(head),
      retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter),
      bytes,
    };
  }
}

/** As many connections to a server as requests are on their way. */
export class ConnectionPool {
  readonly #server: { readonly host: string; readonly port: number };
  /** The one that was used last at the end. */
  readonly #idle: Connection[] = [];

  /** @param origin scheme, host and port of the server */
  constructor(origin: string) {
    const { hostname, port } = new URL(origin);
    this.#server = { host: hostname, port: Number(port) };
  }

  /** Sends a GET, and resolves at the last byte of its response. */
  async request(path: string): Promise<Received> {
    const { host, port } = this.#server;
    const head = `GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n`;
    let connection = this.#idle.pop();
    while (connection?.isOpen === false) connection = this.#idle.pop();
    connection ??= new Connection(this.#server);
    const received = await connection.request(`${head}\r\n`);
    if (connection.isOpen) this.#idle.push(connection);
    return received;
  }

  close(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }
}
