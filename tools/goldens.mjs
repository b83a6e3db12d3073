/**
 * Compares all goldens, and writes `test-report/goldens.html`, which shows each of them:
 *
 *     npm run goldens                        compares
 *     npm run goldens -- --update            writes the goldens that are missing or no longer match
 *     npm run goldens -- --update kinds/     the same for rows whose names begin with `kinds/`
 *
 * Look at every changed file on the page before it is committed.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { update: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [name = '', ...more] = positionals;
if (more.length > 0 || (name !== '' && !values.update)) {
  console.error('Usage: npm run goldens [-- --update [NAME]]');
  process.exit(64);
}
const run = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit'];
const { status } = spawnSync(process.execPath, [...run, 'test/golden/goldens.test.ts'], {
  stdio: 'inherit',
  env: { ...process.env, GOLDENS: values.update ? `update ${name}` : 'show' },
});
console.log('\nThe page of goldens: test-report/goldens.html');
process.exit(status ?? 1);
