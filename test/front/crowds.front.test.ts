import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { get as getTls, Agent as TlsAgent } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { connectSecurely } from '../support/http/raw-http.ts';
import { tlsSettings } from '../support/http/tls-files.ts';
import { residentBytes } from '../support/processes/process-memory.ts';
import { type ServiceProcess, useService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const HIT = '/avatars/0.png';
const LARGE = '/attachments/1/2/large';

let service: ServiceProcess;

async function start(settings: Record<string, string>, openFiles?: number): Promise<number> {
  service = await useService(settings, { openFiles });
  return Number(new URL(service.origin).port);
}

/** A storage of one attachment that no buffer holds. */
async function makeStorage(): Promise<string> {
  const { path, put } = await useTemporaryFolder();
  await put(LARGE, Buffer.alloc(64 * 1024 * 1024));
  return path;
}

/** Opens many connections, some at the same time, over several addresses of this machine lest ports run out. */
async function openCrowd(
  count: number,
  open: (index: number) => Promise<Socket>,
  length = 250,
): Promise<readonly Socket[]> {
  const crowd: Socket[] = [];
  for (let first = 0; first < count; first += length) {
    crowd.push(...(await Promise.all(Array.from({ length }, (_, index) => open(first + index)))));
  }
  return crowd;
}

/** Opens a connection; one that is closed at once is a connection, too. */
async function openSocket(port: number, index: number): Promise<Socket> {
  const localAddress = `127.0.0.${2 + (index % 8)}`;
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
  return socket;
}

/** Asks over an open connection, and reads what comes until there is something of a response. */
async function askOver(socket: Socket, path: string): Promise<void> {
  const responded = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await responded.catch(() => undefined);
}

/** Statuses and times of requests one after the other, over new connections or one that is kept. */
async function measureHits(
  url: string,
  count: number,
  keepAlive = true,
): Promise<{ readonly statuses: readonly unknown[]; readonly p50Ms: number }> {
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
  const p50Ms = timesMs[Math.floor((count - 1) / 2)] ?? Number.NaN;
  return { statuses: [...statuses], p50Ms };
}

/** Files that a process has open, sockets included. */
function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Prints figures for the note of a release. */
function print(what: string, figures: Record<string, number>): void {
  const rounded = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(1)}`);
  process.stdout.write(`${what}: ${rounded.join(', ')}\n`);
}

/** A crowd, seen from the service: what it costs, and whether hits go on and memory comes back. */
async function observe(what: string, count: number, gather: () => Promise<readonly Socket[]>) {
  const url = `${service.origin}${HIT}`;
  const alone = await measureHits(url, 500);
  const before = { bytes: residentBytes(service.pid), files: openFilesOf(service.pid) };
  const crowd = await gather();
  const crowded = await measureHits(url, 500);
  const newcomers = await measureHits(url, 100, false);
  const during = { bytes: residentBytes(service.pid), files: openFilesOf(service.pid) };
  for (const socket of crowd) socket.destroy();
  await expect
    .poll(() => openFilesOf(service.pid), { timeout: 20_000 })
    .toBeLessThan(before.files + 10);
  const afterwards = await measureHits(url, 500);
  print(what, {
    'kB each': (during.bytes - before.bytes) / count / 1024,
    'files each': (during.files - before.files) / count,
    'p50 ms alone': alone.p50Ms,
    'p50 ms crowded': crowded.p50Ms,
  });
  for (const { statuses } of [alone, crowded, newcomers, afterwards]) {
    expect(statuses).toEqual([200]);
  }
  // No measure of speed, as one pause of a busy machine is not: most requests are held up by nothing.
  expect(crowded.p50Ms).toBeLessThan(100);
  return { bytesEach: (during.bytes - before.bytes) / count, files: during.files - before.files };
}

describe('10 000 idle connections', () => {
  test('cost little, and no other client notices', async () => {
    const port = await start({});
    const { bytesEach, files } = await observe('idle, plain', 10_000, () =>
      openCrowd(10_000, async (index) => {
        const socket = await openSocket(port, index);
        await askOver(socket, HIT);
        return socket;
      }),
    );
    expect(files).toBeGreaterThan(9_990);
    expect(bytesEach).toBeLessThan(24 * 1024);
  });
});

describe('2 000 idle connections with TLS', () => {
  test('cost little, and no other client notices', async () => {
    const port = await start(tlsSettings);
    const open = async () => {
      const socket = await connectSecurely(port);
      await askOver(socket, HIT);
      return socket;
    };
    const { bytesEach } = await observe('idle, over TLS', 2_000, () => openCrowd(2_000, open, 20));
    expect(bytesEach).toBeLessThan(160 * 1024);
  });
});

describe('500 clients that do not read', () => {
  test.each([
    ['plain', {}],
    ['with TLS', tlsSettings],
  ])('hold little of the service, and their system buffers: %s', async (what, settings) => {
    const bounds = { STORAGE_DIR: await makeStorage(), ORIGIN_MAX_STREAMS: '600' };
    const port = await start({ ...bounds, ...settings });
    const { bytesEach } = await observe(`not reading, ${what}`, 500, async () => {
      const crowd = await openCrowd(500, async (index) => {
        const socket = await openSocket(port, index);
        if (what === 'plain') {
          socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: a\r\n\r\n`);
          return socket.pause();
        }
        const secure = connectTls({ socket, rejectUnauthorized: false });
        secure.on('error', () => undefined);
        await once(secure, 'secureConnect');
        await askOver(secure, LARGE);
        secure.pause();
        return socket.pause();
      });
      // All have a file open, and have stopped since no buffer takes more.
      await expect
        .poll(() => openFilesOf(service.pid), { timeout: 20_000 })
        .toBeGreaterThanOrEqual(1_000); // a socket and a file for each
      return crowd;
    });
    expect(bytesEach).toBeLessThan(1024 * 1024);
  });
});

describe('where few files may be open', () => {
  test('neither the storage nor the listener runs out of them', async () => {
    const bounds = { ORIGIN_MAX_STREAMS: '128', ORIGIN_MAX_READS: '16' };
    const port = await start(
      { STORAGE_DIR: await makeStorage(), LOG_LEVEL: 'info', ...bounds },
      512,
    );
    const crowd = await openCrowd(1_500, async (index) => {
      const socket = await openSocket(port, index);
      socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: a\r\nRange: bytes=0-50000000\r\n\r\n`);
      return socket.pause();
    });
    let most = 0;
    const countMost = (): number => {
      most = Math.max(most, openFilesOf(service.pid));
      return most;
    };
    // Three times as many as these want to come in.
    await expect.poll(countMost, { timeout: 10_000 }).toBeGreaterThan(200);
    print('512 files', { 'at most open': most });
    // A client that stands still is dropped after 10 s; then others are served.
    await expect
      .poll(
        async () => {
          countMost();
          return (await measureHits(`${service.origin}${LARGE}`, 1, false)).statuses;
        },
        {
          timeout: 60_000,
          interval: 500,
        },
      )
      .toEqual([200]);
    for (const socket of crowd) socket.destroy();
    expect(most).toBeLessThan(450);
    expect(service.output()).not.toMatch(/EMFILE|ORIGIN_ERROR|"level":50/);
  });
});
