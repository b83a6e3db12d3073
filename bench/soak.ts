import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judgeRun, judgeVisits } from './soak/criteria.ts';
import { formatReport } from './soak/report.ts';
import { readServiceLog } from './soak/service-log.ts';
import { drawSoak } from './soak/soak-chart.ts';
import { runSoak } from './soak/soak-run.ts';

/** Beside the code, and not part of the repository. */
const REPORT_FOLDER = 'bench-report';

/** `npm run soak -- --minutes 2 --seed 7`: see docs/performance.md. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '30' },
      seed: { type: 'string', default: '1' },
      clients: { type: 'string', default: '24' },
      'think-ms': { type: 'string', default: '400' },
      'burst-requests': { type: 'string', default: '200' },
    },
  });
  const number = (name: keyof typeof values): number => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name}: expected a number above 0`);
    return value;
  };
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const run = await runSoak(
    {
      durationMs: number('minutes') * 60_000,
      seed: number('seed'),
      pressure: {
        clients: number('clients'),
        thinkMs: number('think-ms'),
        burstEveryMs: 90_000,
        burstRequests: number('burst-requests'),
      },
      logFile: join(REPORT_FOLDER, 'soak-service.log'),
    },
    cut.signal,
  );
  const judged = judgeVisits(run);
  const log = readServiceLog(run.options.logFile, run, run.beganMs);
  const criteria = judgeRun(run, judged, log);
  const report = formatReport(run, judged, log, criteria);
  writeFileSync(join(REPORT_FOLDER, 'soak.md'), report);
  writeFileSync(join(REPORT_FOLDER, 'soak.svg'), drawSoak(run));
  process.stdout.write(`${report}\nWritten to ${REPORT_FOLDER}/: soak.md, soak.svg\n`);
  return criteria.some(({ result }) => result === 'broken') ? 1 : 0;
}

// The first Ctrl-C ends the load, and what was measured is told; the second one ends everything.
const cut = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => cut.abort());
process.exitCode = await main();
