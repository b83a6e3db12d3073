import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { get as getTls, Agent as TlsAgent } from 'node:https';
import { connect, type Socket } from 'node:net';

/** Connections that are opened at the same time. */
const AT_A_TIME = 250;

/** Opens many connections, over several addresses of this machine lest ports run out. */
export async function openCrowd(
  count: number,
  open: (index: number) => Promise<Socket>,
): Promise<Socket[]> {
  const crowd: Socket[] = [];
  for (let first = 0; first < count; first += AT_A_TIME) {
    const length = Math.min(AT_A_TIME, count - first);
    crowd.push(...(await Promise.all(Array.from({ length }, (_, index) => open(first + index)))));
  }
  return crowd;
}

/** Opens a connection; one that is closed at once is a connection, too. */
export async function openSocket(port: number, index: number): Promise<Socket> {
  const localAddress = `127.0.0.${2 + (index % 8)}`;
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
  return socket;
}

/** Asks over an open connection, and reads what comes until there is something of a response. */
export async function askOver(socket: Socket, path: string): Promise<void> {
  const responded = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await responded.catch(() => undefined);
}

export function closeCrowd(crowd: readonly Socket[]): void {
  for (const socket of crowd) socket.destroy();
}

/** Statuses and times of requests one after the other, over new connections or one that is kept. */
export async function measureHits(
  url: string,
  count: number,
  keepAlive = true,
): Promise<{
  readonly statuses: readonly unknown[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}> {
  const options = { keepAlive, maxSockets: 1, rejectUnauthorized: false };
  const isTls = url.startsWith('https');
  const agent = isTls ? new TlsAgent(options) : new Agent(options);
  const timesMs: number[] = [];
  const statuses = new Set<unknown>();
  for (let index = 0; index < count; index += 1) {
    const startMs = performance.now();
    statuses.add(
      await new Promise((resolve) => {
        const request = isTls ? getTls(url, { agent }) : get(url, { agent });
        request.on('error', (error) => resolve('code' in error ? error.code : error));
        request.on('response', (response) => {
          response.resume().once('end', () => resolve(response.statusCode));
          response.once('error', (error) => resolve(error));
        });
      }),
    );
    timesMs.push(performance.now() - startMs);
  }
  agent.destroy();
  timesMs.sort((a, b) => a - b);
  const at = (share: number): number => timesMs[Math.floor(share * (count - 1))] ?? Number.NaN;
  return { statuses: [...statuses], p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** Files that a process has open, sockets included. */
export function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
