import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { AWS_KEYS } from '../../support/edges/aws-signature.ts';
import { edgeSettings } from '../../support/edges/edge-app.ts';
import { EDGE_TOKEN, type EdgeName, startEdge } from '../../support/edges/edge-server.ts';
import { findFreePorts } from '../../support/processes/free-ports.ts';
import { type ServiceProcess, startService } from '../../support/processes/service-process.ts';
import { withToken } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

/** Purges in the journal when the process is killed, a key each. */
const PURGES = 12;

/** Members of the responses of the routes of purges. */
interface Body {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
  readonly count: number;
}

/**
 * Starts a replica as a process.
 *
 * @param place settings of the place of the list
 */
async function startReplica(name: EdgeName, url: string, place: Readonly<Record<string, string>>) {
  const [port = 0] = await findFreePorts(1);
  const service: ServiceProcess = await startService({
    ...edgeSettings(name, { url }),
    ...place,
    ...{ ADMIN_PORT: String(port), TRANSFORM_TIMEOUT_MS: '1000' },
    ...(name === 'cloudfront' && {
      AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
    }),
  });
  onTestFinished(async () => void (await service.stop('SIGKILL')));
  const ask = async (path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { ...withToken, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Body };
  };
  return { service, ask };
}

/** Kills a replica in the middle of its purges; another one, or its next start, ends them. */
async function killInTheMiddle(
  name: EdgeName,
  isRestarted: boolean,
  place: Readonly<Record<string, string>>,
): Promise<void> {
  const edge = await startEdge(name);
  const replica = await startReplica(name, edge.url, place);
  const other = isRestarted ? undefined : await startReplica(name, edge.url, place);
  // The first call is taken; the second one hangs, and the process is killed meanwhile.
  edge.faults.push('failed', 'hang');
  const ids: string[] = [];
  for (let index = 0; index < PURGES; index += 1) {
    const { status, body } = await replica.ask('/purge', { assets: [`emojis/${index}`] });
    expect(status).toBe(202);
    ids.push(body.id);
  }
  await expect.poll(() => edge.underWay()).toBe(1);
  await expect.poll(() => edge.statuses.length).toBe(2);
  await replica.service.stop('SIGKILL');
  const taker = other ?? (await startReplica(name, edge.url, place));
  const read = async () => (await taker.ask('/purges')).body.count;
  expect(await read()).toBe(PURGES);
  await expect.poll(read, { timeout: 100_000, interval: 500 }).toBe(0);
  for (const id of ids) expect((await taker.ask(`/purges/${id}`)).body.status).toBe('done');
  expect(edge.counts().size).toBe(PURGES);
  expect(Math.min(...edge.counts().values())).toBeGreaterThanOrEqual(2);
  for (const { service } of [replica, taker]) {
    expect(service.output()).not.toContain(EDGE_TOKEN);
    expect(service.output()).not.toContain(AWS_KEYS.accessKeyId);
  }
}

/** Settings of a list in a folder of its own. */
async function useFolder() {
  const { path } = await useTemporaryFolder();
  return { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
}

test('every tag arrives at each CDN, although a process is killed in the middle of a call that hangs', async () => {
  await Promise.all([
    killInTheMiddle('cloudflare', true, await useFolder()),
    killInTheMiddle('fastly', false, await useFolder()),
    killInTheMiddle('bunny', true, await useFolder()),
    killInTheMiddle('cloudfront', false, await useFolder()),
  ]);
});

test('a call without a response ends at its deadline, and is repeated', async () => {
  const edge = await startEdge('fastly');
  const place = await useFolder();
  const { ask } = await startReplica('fastly', edge.url, place);
  edge.faults.push('hang');
  const { body } = await ask('/purge', { prefix: 'icons/' });
  await sleep(2_000);
  expect(edge.taken.length).toBe(0);
  await expect.poll(() => edge.taken.length, { timeout: 20_000 }).toBe(1);
  const { reason } = (await ask(`/purges/${body.id}`)).body;
  expect(reason).toBe('no response within 10000 ms');
});

test('a stop leaves what is pending to the next start, and takes no longer for it', async () => {
  const edge = await startEdge('fastly');
  const place = await useFolder();
  const one = await startReplica('fastly', edge.url, place);
  edge.faults.push('hang');
  const { body } = await one.ask('/purge', { prefix: 'icons/' });
  await expect.poll(() => edge.underWay()).toBe(1);
  const beganMs = performance.now();
  expect(await one.service.stop()).toBe(0);
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  const next = await startReplica('fastly', edge.url, place);
  await expect.poll(() => edge.taken.length, { timeout: 10_000 }).toBe(1);
  expect((await next.ask(`/purges/${body.id}`)).body.status).toBe('pending');
});
