import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { tlsSettings } from '../support/http/tls-files.ts';
import { residentBytes } from '../support/processes/process-memory.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { askOver, closeCrowd, measureHits, openCrowd, openFilesOf, openSocket } from './crowd.ts';

const HIT = '/avatars/0.png';
const LARGE = '/attachments/1/2/large';

let service: ServiceProcess;
let storage: string | undefined;

afterEach(async () => {
  await service.stop();
  if (storage !== undefined) rmSync(storage, { recursive: true });
  storage = undefined;
});

async function start(settings: Record<string, string>, openFiles?: number): Promise<number> {
  service = await startService(settings, { openFiles });
  return Number(new URL(service.origin).port);
}

/** A storage of one attachment that no buffer holds. */
function makeStorage(): string {
  storage = mkdtempSync(join(tmpdir(), 'darkroom-front-'));
  mkdirSync(join(storage, 'attachments/1/2'), { recursive: true });
  writeFileSync(join(storage, LARGE), Buffer.alloc(64 * 1024 * 1024));
  return storage;
}

/** Prints figures for the note of a release. */
function print(what: string, figures: Record<string, number>): void {
  const rounded = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(1)}`);
  process.stdout.write(`${what}: ${rounded.join(', ')}\n`);
}

/** A crowd, seen from the service: what it costs, and whether hits go on and memory comes back. */
async function observe(what: string, count: number, gather: () => Promise<() => void>) {
  const url = `${service.origin}${HIT}`;
  const alone = await measureHits(url, 500);
  const before = { bytes: residentBytes(service.pid), files: openFilesOf(service.pid) };
  const disperse = await gather();
  const crowded = await measureHits(url, 500);
  const newcomers = await measureHits(url, 100, false);
  const during = { bytes: residentBytes(service.pid), files: openFilesOf(service.pid) };
  disperse();
  await expect
    .poll(() => openFilesOf(service.pid), { timeout: 20_000 })
    .toBeLessThan(before.files + 10);
  const afterwards = await measureHits(url, 500);
  print(what, {
    'kB each': (during.bytes - before.bytes) / count / 1024,
    'files each': (during.files - before.files) / count,
    'p50 ms alone': alone.p50Ms,
    'p50 ms crowded': crowded.p50Ms,
    'p99 ms alone': alone.p99Ms,
    'p99 ms crowded': crowded.p99Ms,
    'p99 ms newcomers': newcomers.p99Ms,
    'p99 ms afterwards': afterwards.p99Ms,
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
    const { bytesEach, files } = await observe('idle, plain', 10_000, async () => {
      const crowd = await openCrowd(10_000, async (index) => {
        const socket = await openSocket(port, index);
        await askOver(socket, HIT);
        return socket;
      });
      return () => closeCrowd(crowd);
    });
    expect(files).toBeGreaterThan(9_990);
    expect(bytesEach).toBeLessThan(24 * 1024);
  });
});

describe('2 000 idle connections with TLS', () => {
  test('cost little, and no other client notices', async () => {
    const port = await start(tlsSettings);
    const open = async () => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      socket.on('error', () => undefined);
      await once(socket, 'secureConnect');
      await askOver(socket, HIT);
      return () => socket.destroy();
    };
    const { bytesEach } = await observe('idle, over TLS', 2_000, async () => {
      const ends: (() => void)[] = [];
      for (let index = 0; index < 2_000; index += 20) {
        ends.push(...(await Promise.all(Array.from({ length: 20 }, open))));
      }
      return () => {
        for (const end of ends) end();
      };
    });
    expect(bytesEach).toBeLessThan(160 * 1024);
  });
});

describe('500 clients that do not read', () => {
  test.each([
    ['plain', {}],
    ['with TLS', tlsSettings],
  ])('hold little of the service, and their system buffers: %s', async (what, settings) => {
    const bounds = { STORAGE_DIR: makeStorage(), ORIGIN_MAX_STREAMS: '600' };
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
      return () => closeCrowd(crowd);
    });
    expect(bytesEach).toBeLessThan(1024 * 1024);
  });
});

describe('where few files may be open', () => {
  test('neither the storage nor the listener runs out of them', async () => {
    const bounds = { ORIGIN_MAX_STREAMS: '128', ORIGIN_MAX_READS: '16' };
    const port = await start({ STORAGE_DIR: makeStorage(), LOG_LEVEL: 'info', ...bounds }, 512);
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
    closeCrowd(crowd);
    expect(most).toBeLessThan(450);
    expect(service.output()).not.toMatch(/EMFILE|ORIGIN_ERROR|"level":50/);
  });
});
