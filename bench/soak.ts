import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { judgeRun, judgeVisits } from './soak/criteria.ts';
import { formatReport } from './soak/report.ts';
import { readServiceLog } from './soak/service-log.ts';
import { runSoak } from './soak/soak-run.ts';

/** `npm run soak -- --minutes 2 --seed 7 --originals disk`: see docs/performance.md. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '30' },
      seed: { type: 'string', default: '1' },
      clients: { type: 'string', default: '24' },
      /** `bucket` or `disk`. */
      originals: { type: 'string', default: 'bucket' },
      'think-ms': { type: 'string', default: '400' },
      'burst-requests': { type: 'string', default: '200' },
    },
  });
  const originals = (['bucket', 'disk'] as const).find((place) => place === values.originals);
  if (originals === undefined) throw new Error('--originals: expected bucket or disk');
  const number = (name: keyof typeof values): number => parsePositive(name, values[name]);
  const options = {
    durationMs: number('minutes') * 60_000,
    seed: number('seed'),
    originals,
    pressure: {
      clients: number('clients'),
      thinkMs: number('think-ms'),
      burstRequests: number('burst-requests'),
    },
  };
  const run = await runSoak(options, over);
  const judged = judgeVisits(run);
  const log = readServiceLog(run);
  const criteria = judgeRun(run, judged, log);
  publishReport('soak.md', formatReport(run, judged, log, criteria));
  return criteria.some(([, , , isHeld]) => isHeld === false) ? 1 : 0;
}

// The first Ctrl-C ends the load, and what was measured is reported; the second one ends everything.
const over = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort());
process.exitCode = await main();
