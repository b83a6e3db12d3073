import { connect, type Socket } from 'node:net';

/** Time without a byte after which a response counts as failed. */
const SILENCE_MS = 90_000;

/** Size of the buffer that each connection reuses, so that a large body causes no allocations. */
const READ_BYTES = 64 * 1024;

const HEAD_END = Buffer.from('\r\n\r\n');

/** Properties of a response that a load records. */
export interface Received {
  /** 0 without a complete response. */
  readonly status: number;
  readonly isHit: boolean;
}

/**
 * Connection with one request at a time. It uses little CPU, because it runs on the server's machine: it parses only
 * the head, and a response without `Content-Length` counts as failed.
 */
export class Connection {
  readonly #host: string;
  readonly #socket: Socket;
  #settle: ((received: Received) => void) | undefined;
  #received: Received | undefined;
  #partOfHead = Buffer.of();
  #bytesLeft = 0;

  constructor(origin: URL) {
    this.#host = origin.host;
    const callback = (bytesRead: number, { buffer, byteOffset }: Uint8Array): boolean => {
      this.#take(Buffer.from(buffer, byteOffset, bytesRead));
      return true;
    };
    const onread = { buffer: Buffer.alloc(READ_BYTES), callback };
    const { hostname: host, port } = origin;
    this.#socket = connect({ host, port: Number(port), noDelay: true, onread });
    this.#socket.setTimeout(SILENCE_MS, () => this.#socket.destroy());
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#settle?.({ status: 0, isHit: false }));
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  /** Sends a GET; resolves at the last byte of its response, or when the connection closes. */
  request(path: string): Promise<Received> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`, 'latin1');
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
