import { connect, type Socket } from 'node:net';

/** Time without a byte after which a response counts as failed. */
const SILENCE_MS = 90_000;

/** Size of the one buffer that each connection reads into again and again: a large body costs only the reading. */
const READ_BYTES = 64 * 1024;

const HEAD_END = Buffer.from('\r\n\r\n');

/** Rest after which a connection is closed. Node closes after 5 s, perhaps just when a request is sent (RFC 9112 §9.5). */
const KEEP_IDLE_MS = 4_000;

/** Response, as far as a load needs it. */
export interface Received {
  /** 0 if no whole response came. */
  readonly status: number;
  readonly isHit: boolean;
}

const FAILED: Received = { status: 0, isHit: false };

/**
 * Connection with one request at a time. It shares the machine with the server, so it does as little as possible: it
 * parses only the head, and a response without `Content-Length` counts as failed.
 */
class Connection {
  readonly #socket: Socket;
  #settle: ((received: Received) => void) | undefined;
  #received: Received | undefined;
  #partOfHead = Buffer.of();
  #bytesLeft = 0;

  constructor(origin: URL) {
    const callback = (bytesRead: number, { buffer, byteOffset }: Uint8Array): boolean => {
      this.#take(Buffer.from(buffer, byteOffset, bytesRead));
      return true;
    };
    const onread = { buffer: Buffer.alloc(READ_BYTES), callback };
    const { hostname: host, port } = origin;
    this.#socket = connect({ host, port: Number(port), noDelay: true, onread });
    this.#socket.on('timeout', () => this.#socket.destroy());
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#settle?.(FAILED));
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  /** Sends a request; resolves at the last byte of its response, or when the connection closes. */
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
      if (headEnd < 0) return;
      this.#readHead(bytes.toString('latin1', 0, headEnd));
      this.#bytesLeft -= bytes.length - headEnd - HEAD_END.length;
    } else this.#bytesLeft -= chunk.length;
    const received = this.#received;
    if (received === undefined || this.#bytesLeft > 0) return;
    this.#received = undefined;
    this.#socket.setTimeout(KEEP_IDLE_MS);
    this.#settle?.(received);
  }

  #readHead(head: string): void {
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) this.close();
    this.#bytesLeft = Number(length ?? Number.POSITIVE_INFINITY);
    this.#received = {
      status: Number(head.slice(9, 12)),
      isHit: /\r\ncache-status: [^\r]*hit/i.test(head),
    };
  }
}

/** As many connections to a server as there are requests at a time. */
export class ConnectionPool {
  readonly #origin: URL;
  /** Idle connections; the last one was used last. */
  readonly #idle: Connection[] = [];

  constructor(origin: string) {
    this.#origin = new URL(origin);
  }

  /** Sends a GET; resolves at the last byte of its response. */
  async request(path: string): Promise<Received> {
    let connection = this.#idle.pop();
    while (connection?.isOpen === false) connection = this.#idle.pop();
    connection ??= new Connection(this.#origin);
    const head = `GET ${path} HTTP/1.1\r\nHost: ${this.#origin.host}\r\n\r\n`;
    const received = await connection.request(head);
    if (connection.isOpen) this.#idle.push(connection);
    return received;
  }

  close(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }
}
