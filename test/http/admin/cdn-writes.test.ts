import { hash } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { useCdnApp, useCdnReplicas } from '../../support/cdn/cdn-app.ts';
import { sendToAdmin, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples } from '../../support/test-app.ts';

/** Interval between the rounds: TRANSFORM_TIMEOUT_MS and 30 s. */
const SECOND_ROUND_MS = 45_000;

test('a process keeps its purge if the response to a write is lost and the retry gets a 412', async () => {
  const { cdn, app, objects, pass, clock } = await useCdnApp('fastly');
  const write = objects.write.bind(objects);
  let lost = 0;
  objects.write = async (name, ...rest) => {
    const tag = await write(name, ...rest);
    if (!name.startsWith('purge-') || lost === 2) return tag;
    lost += 1;
    return undefined; // the response is lost, and the retry finds the new version
  };
  const response = await sendToAdmin(app, '/purge', { assets: ['icons/1/ab'] });
  expect(response.statusCode).toBe(202);
  await pass(() => cdn.purges.length === 2);
  expect([lost, clock.nowMs()]).toEqual([2, SECOND_ROUND_MS]);
  expect(app.log.count('took over purges whose lease had expired')).toBe(0);
});

test('stores the states of many purges with a limited number of concurrent writes', async () => {
  const { cdn, app, objects, pass } = await useCdnApp('fastly');
  cdn.faults.push('limited with time');
  for (let index = 0; index < 100; index += 1) {
    const response = await sendToAdmin(app, '/purge', { assets: [`icons/1/${index}`] });
    expect(response.statusCode).toBe(202);
  }
  const write = objects.write.bind(objects);
  let [current, maximum, count] = [0, 0, 0];
  objects.write = async (...args) => {
    current += 1;
    maximum = Math.max(maximum, current);
    await new Promise(setImmediate);
    count += 1;
    current -= 1;
    return write(...args);
  };
  await pass(() => cdn.purges.length > 0);
  await vi.waitFor(() => expect(count).toBeGreaterThanOrEqual(100));
  // Eight writes of states, and eight renewals of leases.
  expect(maximum).toBeLessThanOrEqual(16);
});

test('a repeated block makes other replicas purge again', async () => {
  const replicas = await useCdnReplicas('fastly', { settings: { BLOCKLIST_POLL_SECONDS: '1' } });
  const { cdn, open, pass } = replicas;
  const [one, other] = [await open(), await open()];
  other.originals.put('icons/1/ab', samples.jpeg);
  await other.requestAdmin('/metadata/icons/1/ab?sha256=true', { headers: withToken });
  const block = () => sendToAdmin(one, '/blocks', { sha256: [hash('sha256', samples.jpeg)] });
  await block();
  await expect.poll(() => cdn.purges.length, { timeout: 5_000 }).toBe(1);
  await pass(() => cdn.purges.length === 2);
  await block();
  await expect.poll(() => cdn.purges.length, { timeout: 5_000 }).toBe(3);
  const { blocks } = (await one.requestAdmin('/blocks', { headers: withToken })).json();
  expect(Object.keys(blocks[0])).toEqual(['kind', 'value', 'hidden', 'note']);
});
