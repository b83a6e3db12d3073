import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../at-end.ts';
import { findFreePorts } from '../processes/local-server.ts';
import { type ServiceProcess, startService } from '../processes/service-process.ts';
import { METRICS_TOKEN, withToken } from '../telemetry/prometheus-text.ts';
import { cdnSettings } from './cdn-app.ts';
import { CDN_TOKEN, startCdnApi } from './cdn-server.ts';

type Settings = Readonly<Record<string, string>>;

/** Storage of the block list that the replicas of a test share. */
interface ListStorage {
  readonly settings: Settings;
  readonly names: () => Promise<readonly string[]>;
  readonly put: (name: string, bytes: Uint8Array) => Promise<unknown>;
  readonly listName: string;
}

/** Delay of the second round of a purge: TRANSFORM_TIMEOUT_MS of these tests, plus 30 s. */
const SECOND_ROUND_MS = 31_000;

const slowPoll = { timeout: 120_000, interval: 200 };

/** Starts replicas as separate processes, which a test can kill and restart. */
async function useReplicas(count: number, settings: Settings) {
  const ports = await findFreePorts(count);
  return Promise.all(ports.map((port) => useReplica({ ...settings, ADMIN_PORT: String(port) })));
}

async function useReplica(settings: Settings) {
  const complete = { ADMIN_TOKEN: METRICS_TOKEN, TRANSFORM_TIMEOUT_MS: '1000', ...settings };
  let service: ServiceProcess | undefined;
  const start = async (): Promise<void> => {
    service = await startService(complete);
  };
  atEnd(() => service?.stop('SIGKILL'));
  await start();
  const request = async (path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${settings.ADMIN_PORT}${path}`, {
      headers: { ...withToken, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  return {
    start,
    kill: () => service?.stop('SIGKILL'),
    stop: () => service?.stop(),
    output: () => service?.output() ?? '',
    request,
    purge: async (...assets: readonly string[]): Promise<string> => {
      const { status, body } = await request('/purge', { assets });
      expect(status).toBe(202);
      return body.id;
    },
    statusOf: async (id: string): Promise<string> => (await request(`/purges/${id}`)).body.status,
  };
}

type Replica = Awaited<ReturnType<typeof useReplica>>;

async function readList(replica: Replica) {
  const { body } = await replica.request('/blocks');
  const blocks: readonly { readonly value: string }[] = body.blocks;
  return { generation: body.generation, values: new Set(blocks.map(({ value }) => value)) };
}

/** Describes purges and blocks while processes are killed, for one storage of the list. */
export function describeReplicas(name: string, openStorage: () => Promise<ListStorage>): void {
  const startReplicas = async (count: number) => {
    const cdn = await startCdnApi('fastly');
    const place = await openStorage();
    const replicas = await useReplicas(count, {
      ...cdnSettings('fastly', cdn),
      ...place.settings,
      TRANSFORM_TIMEOUT_MS: '1000',
    });
    return { cdn, place, replicas: replicas as [Replica, Replica, ...Replica[]] };
  };

  describe(`purges of replicas whose list is in ${name}`, () => {
    test('are sent twice if the process is killed during a call', async () => {
      const { cdn, replicas } = await startReplicas(3);
      const [victim, other] = replicas;
      cdn.faults.push('hang');
      const ids: string[] = [];
      for (const id of [1, 2, 3]) ids.push(await victim.purge(`emojis/${id}`));
      await expect.poll(() => cdn.countPending()).toBe(1);
      await victim.kill();
      expect(await Promise.all(ids.map(other.statusOf))).toEqual(Array(3).fill('pending'));
      expect((await other.request('/purges')).body.count).toBe(3);
      await expect
        .poll(() => Promise.all(ids.map(other.statusOf)), slowPoll)
        .toEqual(Array(3).fill('done'));
      expect([...cdn.counts().values()]).toEqual([2, 2, 2]);
      for (const replica of replicas) expect(replica.output()).not.toContain(CDN_TOKEN);
    });

    test('have their second round on time if the process is killed after the first', async () => {
      const { cdn, replicas } = await startReplicas(2);
      const [victim, other] = replicas;
      const id = await victim.purge('emojis/1');
      await expect.poll(() => cdn.purges.length).toBe(1);
      await sleep(3_000); // until the round is stored
      await victim.kill();
      await expect.poll(() => other.statusOf(id), slowPoll).toBe('done');
      const [first, second] = cdn.purges.map(({ atMs }) => atMs);
      const waitedMs = (second ?? 0) - (first ?? 0);
      expect(waitedMs).toBeGreaterThan(SECOND_ROUND_MS - 500);
      expect(waitedMs).toBeLessThan(SECOND_ROUND_MS + 15_000);
    });

    test('continue after a restart of the only process, immediately after a regular stop', async () => {
      const { cdn, replicas } = await startReplicas(1);
      const [only] = replicas;
      cdn.faults.push('failed', 'failed', 'failed', 'failed', 'failed');
      const ids = [await only.purge('emojis/1'), await only.purge('emojis/2')];
      await expect.poll(() => cdn.statuses.length).toBeGreaterThan(0);
      await only.stop();
      cdn.faults.length = 0;
      const stoppedMs = performance.now();
      await only.start();
      await expect.poll(() => cdn.counts().size, { timeout: 20_000 }).toBe(2);
      expect(performance.now() - stoppedMs).toBeLessThan(10_000);
      await only.kill();
      await only.start();
      await expect
        .poll(() => Promise.all(ids.map(only.statusOf)), slowPoll)
        .toEqual(['done', 'done']);
    });

    test('are sent exactly twice if no process is killed', async () => {
      const { cdn, replicas } = await startReplicas(3);
      cdn.faults.push('failed', 'reset', 'failed');
      const ids: string[] = [];
      for (let id = 1; id <= 12; id += 1) {
        const replica = replicas[id % 3];
        if (replica !== undefined) ids.push(await replica.purge(`emojis/${id}`));
      }
      const [first] = replicas;
      await expect
        .poll(() => Promise.all(ids.map(first.statusOf)), slowPoll)
        .toEqual(Array(12).fill('done'));
      expect([...cdn.counts().values()]).toEqual(Array(12).fill(2));
    });
  });

  test(`one of several processes converts the list and journal of an earlier release in ${name}`, async () => {
    const cdn = await startCdnApi('fastly');
    const place = await openStorage();
    const directory = 'test/http/blocks/earlier';
    const laterMs = Date.now() - 1_795_864_020_000;
    for (const file of await readdir(directory)) {
      const bytes = await readFile(join(directory, file));
      const text = bytes
        .toString('latin1')
        .replace(/(AtMs":)(\d+)/g, (_, field, timeMs) => field + (Number(timeMs) + laterMs));
      await place.put(file, Buffer.from(text, 'latin1'));
    }
    const settings = { ...cdnSettings('fastly', cdn), ...place.settings };
    const replicas = await useReplicas(3, { ...settings, TRANSFORM_TIMEOUT_MS: '1000' });
    for (const replica of replicas) {
      const { generation, values } = await readList(replica);
      expect([generation, values.size]).toEqual([1_003, 6]);
      expect(await replica.statusOf('f7c647c2-b6db-448d-a0d4-bc379df1a62e')).toBe('done');
    }
    const pending = [
      'cdb4a552-8d36-4474-9927-14edbf998933',
      'c671ba37-d32b-403b-a2f3-9504cdbb2d42',
    ];
    const [replica] = replicas;
    await expect
      .poll(() => Promise.all(pending.map((id) => replica?.statusOf(id))), slowPoll)
      .toEqual(['done', 'done']);
    expect([...cdn.counts()].sort()).toEqual([
      ['62f505dfed97d6ee', 2],
      ['9ddd5c26d49bdb83', 2],
      ['cd9ac19e87da08cc', 1],
    ]);
    const names = (await place.names()).filter((file) => !/\.(probe|purge)-/.test(file));
    // In S3, an object whose name looks like a claim belongs to someone else.
    expect(names.filter((file) => !file.includes('.next-'))).toEqual([
      place.listName,
      `${place.listName}.tag-key`,
    ]);
  });

  describe(`blocks of replicas whose list is in ${name}`, () => {
    test('remain if confirmed, also when processes are killed during writes', async () => {
      const place = await openStorage();
      const replicas = await useReplicas(3, place.settings);
      const confirmed = new Set<string>();
      let isOver = false;
      /** Posts one block after another until `isOver`. */
      const post = async (replica: Replica, index: number): Promise<void> => {
        for (let number = 1; !isOver; number += 1) {
          const key = `emojis/${index}${number}`;
          const note = 'x'.repeat(1_000);
          const response = await replica
            .request('/blocks', { keys: [key], note })
            .catch(() => undefined);
          if (response?.status === 200) confirmed.add(key);
          else await sleep(20);
        }
      };
      const posting = replicas.map((replica, index) => post(replica, index + 1));
      for (const victim of [...replicas, ...replicas]) {
        await sleep(500 + 500 * Math.random());
        await victim.kill();
        await victim.start();
      }
      isOver = true;
      await Promise.all(posting);
      expect(confirmed.size).toBeGreaterThan(20);
      const [newest] = await Promise.all(replicas.map(readList));
      const { generation, values } = newest ?? expect.fail('there are three replicas');
      for (const key of confirmed) expect(values, key).toContain(key);
      // A change can be written but not confirmed.
      expect(generation).toBeGreaterThanOrEqual(confirmed.size);
      for (const replica of replicas) {
        await expect
          .poll(async () => (await readList(replica)).values.size, { timeout: 10_000 })
          .toBe(values.size);
      }
      await Promise.all(replicas.map((replica) => replica.kill()));
      await replicas[0]?.start();
      const isProbe = (left: string): boolean => left.includes('.probe-');
      const left = (await place.names()).filter((file) => !isProbe(file));
      expect(left).toEqual([place.listName]);
    });

    test('reach other replicas within BLOCKLIST_POLL_SECONDS, and after a start', async () => {
      const place = await openStorage();
      const settings = { ...place.settings, BLOCKLIST_POLL_SECONDS: '1' };
      const [first, second, third] = await useReplicas(3, settings);
      if (!first || !second || !third) return expect.fail('there are three replicas');
      await third.kill();
      expect((await first.request('/blocks', { keys: ['emojis/1'] })).body).toEqual({
        generation: 1,
      });
      expect((await second.request('/blocks', { keys: ['emojis/2'] })).body).toEqual({
        generation: 2,
      });
      await third.start();
      for (const replica of [first, second, third]) {
        expect(await readList(replica)).toEqual({
          generation: 2,
          values: new Set(['emojis/1', 'emojis/2']),
        });
      }
    });
  });
}
