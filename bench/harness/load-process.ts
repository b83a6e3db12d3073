import { drive, type Load } from './load.ts';
import type { LoadReport } from './load-generator.ts';

/** Entry of a child process: drives one load at a time, so that its generator disturbs no other. */
process.on('message', async (load: Load) => {
  const report: LoadReport = await drive(load).catch((error: unknown) => ({
    failure: String(error),
  }));
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
