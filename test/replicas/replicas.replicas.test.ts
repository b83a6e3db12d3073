import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { type Replica, useCluster } from './cluster.ts';

/** How many different originals there are of the load. */
const ORIGINALS = 60;

const CLIENTS = 12;

const SIZES = [
  16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 160, 240, 256, 300, 320, 480,
];

/** Not the same for all: no client must get another's. */
const originals = ['icons/1/ab12', 'avatars/1/ab12', 'attachments/1/12/red-panda.jpg'].map((key) =>
  readFileSync(`fixtures/originals/${key}`),
);
const originalOf = (id: number): Buffer => originals[id % originals.length] ?? Buffer.of();

const cluster = await useCluster();
for (let id = 1; id <= ORIGINALS; id += 1) {
  await cluster.originals.put(`avatars/${id}/load`, originalOf(id));
}

/** Every rendering once; none is asked for twice in a run of this file. */
function* listPaths(): Generator<string> {
  for (const quality of ['high', 'low']) {
    for (const ext of ['webp', 'png', 'jpg']) {
      for (const size of SIZES) {
        for (let id = 1; id <= ORIGINALS; id += 1) {
          yield `/avatars/${id}/load.${ext}?size=${size}&quality=${quality}`;
        }
      }
    }
  }
}
const unasked = listPaths();

const statusesOf = (responses: readonly ClientResponse[]): number[] =>
  responses.map(({ status }) => status);

/** What Darkroom says of a response that nginx did not have. */
const outcomeOf = ({ header }: ClientResponse): string => header('cache-status');

/** The replica that has a rendering in its memory, and only that one. */
async function findOwner(path: string): Promise<number> {
  const responses = await Promise.all(cluster.replicas.map((replica) => replica.ask(path)));
  expect(statusesOf(responses)).toEqual([200, 200, 200]);
  const owners = responses.flatMap((response, index) =>
    outcomeOf(response) === 'darkroom; hit' ? [index] : [],
  );
  expect(owners, responses.map(outcomeOf).join(' | ')).toHaveLength(1);
  return owners[0] ?? -1;
}

/**
 * Waits until a replica has had its part of a load, however slow the machine.
 *
 * @throws {Error} if it has not after a minute
 */
async function untilRendering(replica: Replica): Promise<void> {
  await expect
    .poll(() => replica.countRenders(), { timeout: 60_000, interval: 100 })
    .toBeGreaterThan(10);
}

/** What has come of a load: ETags of the responses by path, and the failures. */
type LoadReport = Awaited<ReturnType<ReturnType<typeof startLoad>['stop']>>;

/** Has clients ask nginx for one path after another, each path once, until it is stopped. */
function startLoad() {
  const etags = new Map<string, string>();
  const failures: { path: string; startedMs: number; endedMs: number; reason: string }[] = [];
  let isStopped = false;

  const askOne = async (path: string): Promise<void> => {
    const startedMs = performance.now();
    const fail = (reason: string): void =>
      void failures.push({ path, startedMs, endedMs: performance.now(), reason });
    try {
      const { status, header, body } = await cluster.ask(path);
      if (status !== 200) fail(`status ${status}`);
      else if (Number(header('content-length')) !== body.length) fail('a body of another length');
      else etags.set(path, header('etag'));
    } catch (error) {
      fail(String(error));
    }
  };
  const run = async (): Promise<void> => {
    for (let next = unasked.next(); !isStopped && !next.done; next = unasked.next()) {
      await askOne(next.value);
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

/** Wherever the responses of this load came from, each is what any replica gives. */
async function expectSameEverywhere({ etags }: LoadReport): Promise<void> {
  const asked = [...etags];
  const some = asked.filter((_, index) => index % Math.ceil(asked.length / 20) === 0);
  expect(some.length).toBeGreaterThan(5);
  for (const [path, etag] of some) {
    const responses = await Promise.all(cluster.replicas.map((replica) => replica.ask(path)));
    expect(responses.map(({ header }) => header('etag'))).toEqual([etag, etag, etag]);
    const [first, ...others] = responses;
    for (const { body } of others) expect(body.equals(first?.body ?? Buffer.of())).toBe(true);
  }
}

describe('three replicas behind nginx', () => {
  test('share the originals, each with all of its renderings', async () => {
    const owned = [0, 0, 0];
    for (let id = 1; id <= 30; id += 1) {
      const paths = [`/avatars/${id}/load.webp?size=512`, `/avatars/${id}/a_load.gif?size=600`];
      for (const path of paths) expect((await cluster.ask(path)).status).toBe(200);
      const owners = [await findOwner(paths[0] ?? ''), await findOwner(paths[1] ?? '')];
      expect(owners[0]).toBe(owners[1]);
      owned[owners[0] ?? 0] = (owned[owners[0] ?? 0] ?? 0) + 1;
    }
    for (const count of owned) expect(count).toBeGreaterThan(3);
  });

  test('one that is new serves what others have rendered, and renders none of it', async () => {
    const paths = Array.from({ length: 40 }, () => unasked.next().value ?? '');
    const rendered = await Promise.all(paths.map((path) => cluster.ask(path)));
    const [first] = cluster.replicas;
    const rendersBefore = await first.countRenders();
    expect(rendersBefore).toBeGreaterThan(0);
    // A stop writes what is on its way.
    for (const replica of cluster.replicas) expect(await replica.stop()).toBe(0);
    for (const replica of cluster.replicas) await replica.start();

    const responses = await Promise.all(paths.map((path) => first.ask(path)));
    for (const [index, response] of responses.entries()) {
      expect(response.header('etag')).toBe(rendered[index]?.header('etag'));
      expect(response.body.equals(rendered[index]?.body ?? Buffer.of())).toBe(true);
      expect(response.header('cache-status')).toContain('detail=store');
    }
    expect(await first.countRenders()).toBe(0);
  });

  test('a deleted original is a 404 at once after a purge of replicas and nginx', async () => {
    await cluster.originals.put('avatars/1/purged', originalOf(1));
    const paths = ['/avatars/1/purged.webp?size=64', '/avatars/1/purged.png?size=80'];
    for (const path of paths) {
      expect((await cluster.ask(path)).status).toBe(200);
      const responses = await Promise.all(cluster.replicas.map((replica) => replica.ask(path)));
      expect(statusesOf(responses)).toEqual([200, 200, 200]);
    }
    await cluster.originals.remove('avatars/1/purged');
    for (const replica of cluster.replicas) {
      const { removed } = (await replica.purge({ assets: ['avatars/1/purged'] })) as {
        readonly removed: { readonly memory: number; readonly store: number };
      };
      expect(removed.memory).toBe(2);
    }
    expect(cluster.nginx.purge('/avatars/1/purged.')).toBe('2 removed\n');
    for (const path of paths) {
      const responses = await Promise.all(
        [cluster, ...cluster.replicas].map((server) => server.ask(path)),
      );
      expect(statusesOf(responses)).toEqual([404, 404, 404, 404]);
    }
  });

  test('one that is killed under load takes no request with it but those it held, and these succeed when they are tried again', async () => {
    const [, victim] = cluster.replicas;
    const load = startLoad();
    await untilRendering(victim);
    const killedMs = performance.now();
    await victim.stop('SIGKILL');
    await sleep(2_000);
    await victim.start();
    await untilRendering(victim);
    const report = await load.stop();

    expect(report.etags.size).toBeGreaterThan(100);
    expect(report.failures.length).toBeLessThanOrEqual(CLIENTS);
    for (const { path, startedMs, endedMs, reason } of report.failures) {
      expect(startedMs, `${reason}: ${path}`).toBeLessThan(killedMs);
      expect(endedMs, `${reason}: ${path}`).toBeGreaterThan(killedMs);
      expect((await cluster.ask(path)).status).toBe(200);
    }
    await expectSameEverywhere(report);
  });

  test('all of them started anew under load, one after another, fail no request', async () => {
    const load = startLoad();
    for (const replica of cluster.replicas) {
      await untilRendering(replica);
      expect(await replica.stop()).toBe(0);
      await replica.start();
      // As a rolling update does: until it has reached the storage.
      await expect.poll(replica.probe, { timeout: 20_000 }).toBe(200);
      await untilRendering(replica);
    }
    const report = await load.stop();
    expect(report.failures).toEqual([]);
    expect(report.etags.size).toBeGreaterThan(200);
    await expectSameEverywhere(report);
  });
});
