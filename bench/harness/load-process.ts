import { drive, type Load } from './load.ts';
import type { LoadReport } from './load-generator.ts';

/* Entry of a load generator's process. */
process.on('message', async (load: Load) => {
  const report: LoadReport = await drive(load).catch((error: unknown) => ({
    failure: String(error),
  }));
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
