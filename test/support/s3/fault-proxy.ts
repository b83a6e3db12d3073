import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenLocally } from '../processes/local-server.ts';

/** Fault between a client and a server of HTTP/1.1. */
export type Fault =
  /** Replaces the server's response by these bytes; without any, the client receives no response. */
  | { readonly kind: 'response'; readonly bytes: string }
  /** After some bytes of the body, closes the connection, resets it, or stalls. */
  | { readonly kind: 'cut' | 'reset' | 'stall'; readonly afterBytes: number }
  /** Sends a few bytes of the response 20 times a second. */
  | { readonly kind: 'trickle'; readonly bytes: number };

/** A proxy in front of a local server that injects faults. */
export class FaultProxy {
  readonly #target: number;
  readonly #server = createServer((client) => this.#serve(client));
  readonly #clients = new Set<Socket>();
  readonly #silenced = new WeakSet<Socket>();
  #port = 0;
  #fault: Fault | undefined;
  #times = 0;
  /** Number of connections accepted so far. */
  accepted = 0;
  /** Number of chunks received on silenced connections. */
  ignoredChunks = 0;
  /** Number of bytes received from the server. */
  sentBytes = 0;
  /** Delay before a request is forwarded. */
  delayMs = 0;
  /** Heads of all received requests, including those with a fault. */
  readonly requests: string[] = [];

  /** @param target port of the server */
  constructor(target: number) {
    this.#target = target;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get connections(): number {
    return this.#clients.size;
  }

  /** Starts listening; after `refuse`, on the same port. */
  async listen(): Promise<void> {
    this.#port = await listenLocally(this.#server, this.#port);
  }

  /** Stops listening, and drops all connections. */
  async refuse(): Promise<void> {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
    await once(this.#server, 'close');
  }

  /** Stops responding on the open connections, like a firewall that lost their state. */
  silence(): void {
    for (const client of this.#clients) {
      this.#silenced.add(client);
      client.removeAllListeners('data').on('data', () => {
        this.ignoredChunks += 1;
      });
    }
  }

  /** Injects a fault into the next responses. Omit it to stop. */
  setFault(fault?: Fault, times = Number.POSITIVE_INFINITY): void {
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
    let forwardWithFault: ((chunk: Buffer) => void) | undefined;
    client.on('data', (chunk) => {
      // Requests have no body here.
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      const request = head;
      head = '';
      this.requests.push(request);
      this.#times -= 1;
      const fault = this.#times < 0 ? undefined : this.#fault;
      if (fault?.kind === 'response') return void client.write(fault.bytes, 'latin1');
      forwardWithFault = fault && createForwarder(fault, client, server);
      if (this.delayMs === 0) server.write(request, 'latin1');
      else setTimeout(() => server.write(request, 'latin1'), this.delayMs);
    });
    server.on('data', (chunk) => {
      this.sentBytes += chunk.length;
      if (forwardWithFault !== undefined) forwardWithFault(chunk);
      else if (!client.write(chunk)) server.pause();
    });
  }
}

/** Returns a function that forwards one response with a fault. */
function createForwarder(
  fault: Exclude<Fault, { readonly kind: 'response' }>,
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
  let response = Buffer.alloc(0);
  let hasFailed = false;
  return (chunk) => {
    if (hasFailed) return;
    response = Buffer.concat([response, chunk]);
    const end = response.indexOf('\r\n\r\n') + 4 + fault.afterBytes;
    if (end < 4 + fault.afterBytes || response.length < end) return;
    hasFailed = true;
    const part = response.subarray(0, end);
    if (fault.kind === 'cut') client.end(part);
    else if (fault.kind === 'stall') client.write(part);
    else client.write(part, () => setTimeout(() => client.resetAndDestroy(), 50));
  };
}
