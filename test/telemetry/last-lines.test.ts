import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Blocks the event loop while the last line is written, as loading modules does on a busy machine. */
const SCRIPT = `
  const { createLog } = await import(${JSON.stringify(new URL('../../dist/telemetry/log.js', import.meta.url))});
  const { log, flush } = await createLog('info', [], undefined);
  log.info('the last line');
  const flushed = flush();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
  process.exit((await flushed) ? 0 : 1);
`;

test('counts a last line as written, although the event loop was blocked beyond the deadline', () => {
  const args = ['--input-type=module', '--eval', SCRIPT];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect([status, JSON.parse(stdout).msg]).toEqual([0, 'the last line']);
});
