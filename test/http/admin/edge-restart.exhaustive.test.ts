import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { killInTheMiddle, startReplica } from '../../support/edges/edge-process.ts';
import { startEdge } from '../../support/edges/edge-server.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

/** Settings of a list in a folder of its own. */
async function useFolder() {
  const { path } = await useTemporaryFolder();
  return { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
}

test('every tag arrives at each edge, when a process is killed in the middle of a call that hangs', async () => {
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
