import { join } from 'node:path';
import { expect, test } from 'vitest';
import { edgeSettings } from '../../support/edges/edge-app.ts';
import { EDGE_TOKEN, startEdge } from '../../support/edges/edge-server.ts';
import { findFreePorts } from '../../support/processes/local-server.ts';
import { useService } from '../../support/processes/service-process.ts';
import { withToken } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

// What becomes of a journal whose process is gone: edge-purges.test.ts. Here are a real process, folder and time.

test('every tag arrives, although a process is killed in a call that hangs, and that of the next one hangs too', async () => {
  const edge = await startEdge('fastly');
  const { path } = await useTemporaryFolder();
  const [port = 0] = await findFreePorts(1);
  const settings = {
    ...edgeSettings('fastly', edge),
    ...{ BLOCKLIST_FILE: join(path, 'blocks.jsonl'), TRANSFORM_TIMEOUT_MS: '1000' },
    ADMIN_PORT: String(port),
  };
  const ask = async (path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { ...withToken, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return JSON.parse(await response.text());
  };
  edge.faults.push('hang', 'hang');
  const killed = await useService(settings);
  const ids: unknown[] = [];
  for (const id of [1, 2, 3]) ids.push((await ask('/purge', { assets: [`emojis/${id}`] })).id);
  await expect.poll(() => edge.underWay()).toBe(1);
  await killed.stop('SIGKILL');
  const next = await useService(settings);
  expect((await ask('/purges')).count).toBe(3);
  const slowly = { timeout: 100_000, interval: 500 };
  const read = async () => await Promise.all(ids.map((id) => ask(`/purges/${id}`)));
  await expect
    .poll(async () => (await read()).map(({ reason }) => reason), slowly)
    .toContain('no response within 10000 ms');
  await expect
    .poll(async () => (await read()).map(({ status }) => status), slowly)
    .toEqual(['done', 'done', 'done']);
  expect([...edge.counts().values()]).toEqual([2, 2, 2]);
  for (const { output } of [killed, next]) expect(output()).not.toContain(EDGE_TOKEN);
});
