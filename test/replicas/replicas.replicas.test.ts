import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { type Replica, useCluster } from './cluster.ts';

const CLIENTS = 12;

const SIZES = [
  16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 160, 240, 256, 300, 320, 480,
];

const originals = ['icons/1/ab12', 'avatars/1/ab12', 'attachments/1/12/red-panda.jpg'].map((key) =>
  readFileSync(`fixtures/originals/${key}`),
);
const originalOf = (id: number): Buffer => originals[id % originals.length] ?? Buffer.of();

const cluster = await useCluster();
const ids = Array.from({ length: 60 }, (_, index) => index + 1);
const queries = ['high', 'low'].flatMap((quality) =>
  ['webp', 'png', 'jpg'].flatMap((ext) =>
    SIZES.map((size) => `${ext}?size=${size}&quality=${quality}`),
  ),
);
for (const id of ids) await cluster.originals.put(`avatars/${id}/load`, originalOf(id));
/** Paths of renderings, each requested once in a run. */
const freshPaths = queries
  .flatMap((query) => ids.map((id) => `/avatars/${id}/load.${query}`))
  .values();

const requestAll = (path: string): Promise<ClientResponse[]> =>
  Promise.all(cluster.replicas.map((replica) => replica.request(path)));

const statusesOf = (responses: readonly ClientResponse[]): number[] =>
  responses.map(({ status }) => status);

/** Returns the only replica that has a rendering in memory. */
async function findOwner(path: string): Promise<number> {
  const responses = await requestAll(path);
  expect(statusesOf(responses)).toEqual([200, 200, 200]);
  const outcomes = responses.map(({ header }) => header('cache-status'));
  const owner = outcomes.indexOf('darkroom; hit');
  expect(owner, outcomes.join(' | ')).toBeGreaterThanOrEqual(0);
  expect(outcomes.lastIndexOf('darkroom; hit'), outcomes.join(' | ')).toBe(owner);
  return owner;
}

/** Waits until a replica has received its part of a load, also on a slow machine. */
const untilRendering = ({ countRenders }: Replica): Promise<void> =>
  expect.poll(countRenders, { timeout: 60_000, interval: 100 }).toBeGreaterThan(10);

/** Clients request paths from nginx, each path once, until `stop`. */
function startLoad() {
  const etags = new Map<string, string>();
  const failures: { path: string; startedMs: number; endedMs: number; reason: string }[] = [];
  let isStopped = false;

  const requestOne = async (path: string): Promise<void> => {
    const startedMs = performance.now();
    const fail = (reason: string): void =>
      void failures.push({ path, startedMs, endedMs: performance.now(), reason });
    try {
      const { status, header, body } = await cluster.request(path);
      if (status !== 200) fail(`status ${status}`);
      else if (Number(header('content-length')) !== body.length) fail('a body of another length');
      else etags.set(path, header('etag'));
    } catch (error) {
      fail(String(error));
    }
  };
  const run = async (): Promise<void> => {
    for (let next = freshPaths.next(); !isStopped && !next.done; next = freshPaths.next()) {
      await requestOne(next.value);
    }
    if (!isStopped) throw new Error('There are not enough paths for this load.');
  };
  const running = Array.from({ length: CLIENTS }, run);
  return {
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      return { etags, failures };
    },
  };
}

/** Expects that every replica returns the responses of this load. */
async function expectSameEverywhere(etags: ReadonlyMap<string, string>): Promise<void> {
  const all = [...etags];
  const some = all.filter((_, index) => index % Math.ceil(all.length / 20) === 0);
  expect(some.length).toBeGreaterThan(5);
  for (const [path, etag] of some) {
    const responses = await requestAll(path);
    expect(responses.map(({ header }) => header('etag'))).toEqual([etag, etag, etag]);
    const [first, ...others] = responses;
    for (const { body } of others) expect(body).toEqual(first?.body);
  }
}

describe('three replicas behind nginx', () => {
  test('divide the originals; one replica has all renderings of an original', async () => {
    const owned: unknown[] = [];
    for (let id = 1; id <= 30; id += 1) {
      const paths = [`/avatars/${id}/load.webp?size=512`, `/avatars/${id}/a_load.gif?size=600`];
      for (const path of paths) expect((await cluster.request(path)).status).toBe(200);
      const [owner, other] = await Promise.all(paths.map(findOwner));
      expect(owner).toBe(other);
      owned.push(owner);
    }
    for (const index of cluster.replicas.keys()) {
      expect(owned.filter((owner) => owner === index).length).toBeGreaterThan(3);
    }
  });

  test('return 404 for a deleted original immediately after a purge of replicas and nginx', async () => {
    await cluster.originals.put('avatars/1/purged', originalOf(1));
    const paths = ['/avatars/1/purged.webp?size=64', '/avatars/1/purged.png?size=80'];
    for (const path of paths) {
      expect((await cluster.request(path)).status).toBe(200);
      expect(statusesOf(await requestAll(path))).toEqual([200, 200, 200]);
    }
    await cluster.originals.remove('avatars/1/purged');
    for (const replica of cluster.replicas) {
      const { removed } = await replica.purge({ assets: ['avatars/1/purged'] });
      expect(removed.memory).toBe(2);
    }
    expect(cluster.nginx.purge('/avatars/1/purged.')).toBe('2 removed\n');
    for (const path of paths) {
      const responses = [await cluster.request(path), ...(await requestAll(path))];
      expect(statusesOf(responses)).toEqual([404, 404, 404, 404]);
    }
  });

  test('lose only the requests of a replica that is killed under load, and these succeed on a retry', async () => {
    const [, victim] = cluster.replicas;
    const load = startLoad();
    await untilRendering(victim);
    const killedMs = performance.now();
    await victim.stop('SIGKILL');
    await sleep(2_000);
    await victim.start();
    await untilRendering(victim);
    const { etags, failures } = await load.stop();

    expect(etags.size).toBeGreaterThan(100);
    expect(failures.length).toBeLessThanOrEqual(CLIENTS);
    for (const { path, startedMs, endedMs, reason } of failures) {
      expect(startedMs, `${reason}: ${path}`).toBeLessThan(killedMs);
      expect(endedMs, `${reason}: ${path}`).toBeGreaterThan(killedMs);
      expect((await cluster.request(path)).status).toBe(200);
    }
    await expectSameEverywhere(etags);
  });

  test('fail no request while each is restarted under load, one after another', async () => {
    const load = startLoad();
    for (const replica of cluster.replicas) {
      await untilRendering(replica);
      expect(await replica.stop()).toBe(0);
      await replica.start();
      // A rolling update waits until the replica has reached the storage.
      await expect.poll(replica.probe, { timeout: 20_000 }).toBe(200);
      await untilRendering(replica);
    }
    const { etags, failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(etags.size).toBeGreaterThan(200);
    await expectSameEverywhere(etags);
  });
});
