import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { evaluateSoak } from './soak/report.ts';
import { runSoak } from './soak/run.ts';

/* `npm run soak`: see bench/README.md. */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    originals: { type: 'string', default: 'bucket' },
  },
});
const place = (['bucket', 'disk'] as const).find((it) => it === values.originals);
if (place === undefined) throw new Error('--originals: expected bucket or disk');
const durationMs = parsePositive('minutes', values.minutes) * 60_000;
const seed = parsePositive('seed', values.seed);
// The first Ctrl-C ends the load, and the soak writes its report; the second one ends the process.
const over = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort());
const { criteria, report } = evaluateSoak(await runSoak(durationMs, seed, place, over));
publishReport('soak.md', report, criteria);
