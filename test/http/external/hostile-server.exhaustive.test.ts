import { describe, expect, test } from 'vitest';
import { useExternalApp } from '../../support/sites/external-app.ts';
import {
  type HostileRow,
  hostileRows,
  type Outcome,
} from '../../support/sites/hostile-behaviours.ts';
import { HostileServer } from '../../support/sites/hostile-server.ts';

const MEBIBYTE = 2 ** 20;

/** Deadlines that are waited for, in milliseconds; where none is, the usual ones are long enough. */
const SHORT = {
  connectTimeoutMs: 300,
  firstByteTimeoutMs: 300,
  headTimeoutMs: 300,
  wholeBodyTimeoutMs: 500,
  pauseMs: 300,
};

const site = await HostileServer.use();
const settings = {
  EXTERNAL_PORTS: `80,443,${site.port}`,
  MAX_ORIGINAL_BYTES: String(2 * MEBIBYTE),
  EXTERNAL_MAX_BYTES: String(3 * MEBIBYTE),
};
const patient = await useExternalApp({ settings });
const hasty = await useExternalApp({ settings, limits: SHORT });
for (const [index, { act }] of hostileRows.entries()) {
  for (const use of ['rendered', 'passedOn']) site.behaviours.set(`/${use}/${index}`, act);
}

/** Asks for what a row does; tells what came of it, and what it took. */
async function run({ hangs }: HostileRow, path: string, query: string) {
  const app = hangs ? hasty : patient;
  let peakBytes = 0;
  const bytesNow = (): number => process.memoryUsage().arrayBuffers;
  const before = bytesNow();
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, bytesNow() - before);
  }, 5);
  const outcome: Outcome = await app.askUrl(`http://site.test:${site.port}${path}`, query).then(
    ({ status }) => status,
    () => 'cut',
  );
  clearInterval(sampling);
  return { outcome, peakBytes };
}

describe.each([
  ['rendered', 'width=40&format=png'],
  ['passedOn', ''],
] as const)('of a server that does this, %s:', (use, query) => {
  const rows = hostileRows.map((row, index) => ({ ...row, row, index }));

  test.each(rows)('$name', async ({ row, index }) => {
    const { outcome, peakBytes } = await run(row, `/${use}/${index}`, query);
    expect(outcome).toBe(row[use]);
    // Of what is sent without an end, no more is held than what may be of one original, twice while it grows.
    expect(peakBytes).toBeLessThan(64 * MEBIBYTE);
  });
});

test('nothing is left of it', async () => {
  // Those that are kept for later end by themselves.
  await expect.poll(() => site.openConnections).toBe(0);
  expect(patient.log.errors).toEqual([]);
  expect(hasty.log.errors).toEqual([]);
  expect(site.requests.filter((head) => /^(?:cookie|authorization):/im.test(head))).toEqual([]);
});
