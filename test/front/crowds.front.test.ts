import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import { connectTo } from '../support/http/raw-http.ts';
import { tlsFiles, tlsSettings } from '../support/http/tls-files.ts';
import { residentBytes } from '../support/processes/process-memory.ts';
import { type ServiceProcess, useService } from '../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const HIT = '/avatars/0.png';
const LARGE = '/attachments/1/2/large';

let service: ServiceProcess;
let port: number;

async function start(settings: Record<string, string>, openFiles?: number): Promise<void> {
  service = await useService(settings, { openFiles });
  port = Number(new URL(service.origin).port);
}

/** A storage with one attachment that is larger than all buffers. */
async function makeStorage(): Promise<string> {
  const { path, put } = await useTemporaryDirectory();
  await put(LARGE, Buffer.alloc(64 * 1024 * 1024));
  return path;
}

/** Opens many connections, `atOnce` at a time. */
async function openCrowd(count: number, open: (index: number) => Promise<Socket>, length = 250) {
  const crowd: Socket[] = [];
  while (crowd.length < count) {
    const some = Array.from({ length }, (_, index) => open(crowd.length + index));
    crowd.push(...(await Promise.all(some)));
  }
  return crowd;
}

/** Opens a connection from one of several local addresses, because one address has too few ports. */
async function openSocket(index: number): Promise<Socket> {
  const localAddress = `127.0.0.${2 + (index % 8)}`;
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
  return socket;
}

/** Sends a request over an open connection, and reads the first bytes of the response. */
async function requestOver(socket: Socket, path: string): Promise<Socket> {
  const responded = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await responded.catch(() => undefined);
  return socket;
}

/** Returns statuses and times of sequential requests over one or over new connections. */
async function measure(path: string, count: number, pipelining = 1) {
  const isTls = service.origin.startsWith('https');
  const tls = isTls ? { ca: readFileSync(tlsFiles.cert) } : {};
  const request = createClient(port, { connections: 1, pipelining, connect: tls });
  const timesMs: number[] = [];
  const statuses = new Set<unknown>();
  for (let index = 0; index < count; index += 1) {
    const startMs = performance.now();
    statuses.add(await request(path).then(({ status }) => status, String));
    timesMs.push(performance.now() - startMs);
  }
  timesMs.sort((a, b) => a - b);
  return { statuses: [...statuses], p50Ms: timesMs[Math.floor(count / 2)] ?? Number.NaN };
}

/** Counts the open files of the service, including sockets. */
const countOpenFiles = (): number => readdirSync(`/proc/${service.pid}/fd`).length;

/** Measures the cost of a crowd, whether hits continue, and whether memory is freed. */
async function observe(what: string, count: number, gather: () => Promise<readonly Socket[]>) {
  const alone = await measure(HIT, 500);
  const before = { bytes: residentBytes(service.pid), files: countOpenFiles() };
  const crowd = await gather();
  const crowded = await measure(HIT, 500);
  const newcomers = await measure(HIT, 100, 0);
  const bytesEach = (residentBytes(service.pid) - before.bytes) / count;
  const files = countOpenFiles() - before.files;
  for (const socket of crowd) socket.destroy();
  await expect.poll(countOpenFiles, { timeout: 20_000 }).toBeLessThan(before.files + 10);
  const afterwards = await measure(HIT, 500);
  // Printed for the release notes.
  const [kilobytes, ...p50Ms] = [bytesEach / 1024, alone.p50Ms, crowded.p50Ms].map((each) =>
    each.toFixed(1),
  );
  process.stdout.write(`${what}: ${kilobytes} kB each, hits in ${p50Ms.join(' to ')} ms\n`);
  for (const { statuses } of [alone, crowded, newcomers, afterwards]) {
    expect(statuses).toEqual([200]);
  }
  // Most requests must not wait; single pauses on a busy machine are permitted.
  expect(crowded.p50Ms).toBeLessThan(100);
  return { bytesEach, files };
}

const openSecurely = () => connectTo(port, { isTls: true });

test.each<[string, Record<string, string>, number, number, typeof openSocket, number]>([
  ['10 000 idle connections', {}, 10_000, 250, openSocket, 24],
  ['2 000 idle connections with TLS', tlsSettings, 2_000, 20, openSecurely, 160],
])('%s cost little, and affect no other client', async (what, settings, ...row) => {
  const [count, atOnce, open, mostKilobytes] = row;
  await start(settings);
  const { bytesEach, files } = await observe(what, count, () =>
    openCrowd(count, async (index) => requestOver(await open(index), HIT), atOnce),
  );
  expect(files).toBeGreaterThan(count - 10);
  expect(bytesEach).toBeLessThan(mostKilobytes * 1024);
});

test.each([
  ['500 clients that do not read', {}],
  ['500 clients with TLS that do not read', tlsSettings],
])('%s use little memory of the service, and their system buffers', async (what, settings) => {
  const bounds = { STORAGE_DIR: await makeStorage(), ORIGIN_MAX_STREAMS: '600' };
  await start({ ...bounds, ...settings });
  const { bytesEach } = await observe(what, 500, async () => {
    const crowd = await openCrowd(500, async (index) => {
      const socket = await openSocket(index);
      if (settings !== tlsSettings) {
        socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: a\r\n\r\n`);
        return socket.pause();
      }
      const secure = connectTls({ socket, rejectUnauthorized: false });
      secure.on('error', () => undefined);
      await once(secure, 'secureConnect');
      (await requestOver(secure, LARGE)).pause();
      return socket.pause();
    });
    // Each client has an open socket and file, and is stalled with full buffers.
    await expect.poll(countOpenFiles, { timeout: 20_000 }).toBeGreaterThanOrEqual(1_000);
    return crowd;
  });
  expect(bytesEach).toBeLessThan(1024 * 1024);
});

test('neither the storage nor the listener runs out of open files at a low limit', async () => {
  const bounds = { ORIGIN_MAX_STREAMS: '128', ORIGIN_MAX_READS: '16' };
  await start({ STORAGE_DIR: await makeStorage(), LOG_LEVEL: 'info', ...bounds }, 512);
  const crowd = await openCrowd(1_500, async (index) => {
    const socket = await openSocket(index);
    socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: a\r\nRange: bytes=0-50000000\r\n\r\n`);
    return socket.pause();
  });
  let most = 0;
  const countMost = (): number => {
    most = Math.max(most, countOpenFiles());
    return most;
  };
  // Three times this number of clients connect.
  await expect.poll(countMost, { timeout: 10_000 }).toBeGreaterThan(200);
  // A stalled client is dropped after 10 s; then others are served.
  const request = async () => {
    countMost();
    return (await measure(LARGE, 1, 0)).statuses;
  };
  await expect.poll(request, { timeout: 60_000, interval: 500 }).toEqual([200]);
  for (const socket of crowd) socket.destroy();
  expect(most).toBeLessThan(450);
  expect(service.output()).not.toMatch(/EMFILE|ORIGIN_ERROR|"level":50/);
});
