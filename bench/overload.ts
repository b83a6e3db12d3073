import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeOriginals } from './overload/originals.ts';
import { countPaths, runOverload } from './overload/overload-run.ts';
import { formatOverload, judgeOverload } from './overload/report.ts';

/** Beside the code, and not part of the repository. */
const REPORT_FOLDER = 'bench-report';

/** `npm run bench:overload -- --seconds 15 --rounds 2 --factor 5 --factor 20`: see docs/performance.md. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '15' },
      rounds: { type: 'string', default: '2' },
      /** One or several. */
      factor: { type: 'string', multiple: true, default: ['1', '5', '20'] },
      workers: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const parse = (name: string, text: string): number => {
    const value = Number(text);
    if (!(value > 0)) throw new Error(`--${name}: expected a number above 0`);
    return value;
  };
  const number = (name: 'seconds' | 'rounds' | 'workers'): number => parse(name, values[name]);
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const options = {
    phaseMs: number('seconds') * 1000,
    rounds: number('rounds'),
    factors: values.factor
      .map((factor) => parse('factor', factor))
      .sort((one, other) => one - other),
    workers: number('workers'),
    logFile: join(REPORT_FOLDER, 'overload-service.log'),
  };
  const counts = countPaths(options);
  const originals = await makeOriginals(counts.light, counts.heavy);
  try {
    const run = await runOverload(options, originals);
    const report = formatOverload(run, originals.animationBytes);
    writeFileSync(join(REPORT_FOLDER, 'overload.md'), report);
    process.stdout.write(`${report}\nWritten to ${REPORT_FOLDER}/overload.md\n`);
    return judgeOverload(run).every(({ isReached }) => isReached) ? 0 : 1;
  } finally {
    await originals.remove();
  }
}

process.exitCode = await main();
