import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenLocally } from '../processes/local-server.ts';

/** What may go wrong between a client and a server of HTTP/1.1. */
export type Fault =
  /** These bytes come instead of the server's answer; where there are none, the request is never answered. */
  | { readonly kind: 'answer'; readonly bytes: string }
  /** After so many bytes of the body, the connection ends, properly or by a reset, or nothing more comes. */
  | { readonly kind: 'cut' | 'reset' | 'stall'; readonly afterBytes: number }
  /** The answer comes, a few bytes at a time, 20 times a second. */
  | { readonly kind: 'trickle'; readonly bytes: number };

/** A proxy in front of a server on this machine, which passes everything on until it is to spoil it. */
export class FaultProxy {
  readonly #target: number;
  readonly #server = createServer((client) => this.#serve(client));
  readonly #clients = new Set<Socket>();
  readonly #silenced = new WeakSet<Socket>();
  #port = 0;
  #fault: Fault | undefined;
  #times = 0;
  /** Connections that were opened so far. */
  accepted = 0;
  /** Requests that came on connections after they were silenced. */
  unheard = 0;
  /** Bytes that came from the server. */
  sentBytes = 0;
  /** Time before a request is passed on, in milliseconds. */
  delayMs = 0;
  /** Heads of the requests that came, the refused ones included. */
  readonly requests: string[] = [];

  /** @param target port of the server */
  constructor(target: number) {
    this.#target = target;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#clients.size;
  }

  /** Begins to listen; again on the same port after `refuse`. */
  async listen(): Promise<void> {
    this.#port = await listenLocally(this.#server, this.#port);
  }

  /** Lets no connection in any more, and drops those there are. */
  async refuse(): Promise<void> {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
    await once(this.#server, 'close');
  }

  /** Leaves the connections that are open now without any response, as a firewall does that has forgotten them. */
  silence(): void {
    for (const client of this.#clients) {
      this.#silenced.add(client);
      client.removeAllListeners('data').on('data', () => {
        this.unheard += 1;
      });
    }
  }

  /** Spoils the next requests; without a fault, none any more. */
  spoil(fault?: Fault, times = Number.POSITIVE_INFINITY): void {
    this.#fault = fault;
    this.#times = times;
  }

  #serve(client: Socket): void {
    this.accepted += 1;
    this.#clients.add(client);
    const server = connect(this.#target, '127.0.0.1');
    const end = (): void => {
      this.#clients.delete(client);
      client.destroy();
      server.destroy();
    };
    client.on('close', end).on('error', end);
    const endUnlessSilenced = (): void => {
      if (!this.#silenced.has(client)) end();
    };
    server.on('close', endUnlessSilenced).on('error', endUnlessSilenced);
    client.on('drain', () => server.resume());

    let head = '';
    let spoil: ((chunk: Buffer) => void) | undefined;
    client.on('data', (chunk) => {
      // Only requests without a body come here.
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      const request = head;
      head = '';
      this.requests.push(request);
      this.#times -= 1;
      const fault = this.#times < 0 ? undefined : this.#fault;
      if (fault?.kind === 'answer') return void client.write(fault.bytes, 'latin1');
      spoil = fault && createSpoiler(fault, client, server);
      if (this.delayMs === 0) server.write(request, 'latin1');
      else setTimeout(() => server.write(request, 'latin1'), this.delayMs);
    });
    server.on('data', (chunk) => {
      this.sentBytes += chunk.length;
      if (spoil !== undefined) spoil(chunk);
      else if (!client.write(chunk)) server.pause();
    });
  }
}

/** Passes one answer on, spoiled. */
function createSpoiler(
  fault: Exclude<Fault, { readonly kind: 'answer' }>,
  client: Socket,
  server: Socket,
): (chunk: Buffer) => void {
  if (fault.kind === 'trickle') {
    return async (chunk) => {
      server.pause();
      for (let sent = 0; sent < chunk.length && !client.destroyed; sent += fault.bytes) {
        client.write(chunk.subarray(sent, sent + fault.bytes));
        await sleep(50);
      }
      server.resume();
    };
  }
  let answer = Buffer.alloc(0);
  let isSpoiled = false;
  return (chunk) => {
    if (isSpoiled) return;
    answer = Buffer.concat([answer, chunk]);
    const end = answer.indexOf('\r\n\r\n') + 4 + fault.afterBytes;
    if (end < 4 + fault.afterBytes || answer.length < end) return;
    isSpoiled = true;
    const part = answer.subarray(0, end);
    if (fault.kind === 'cut') client.end(part);
    else if (fault.kind === 'stall') client.write(part);
    else client.write(part, () => setTimeout(() => client.resetAndDestroy(), 50));
  };
}
