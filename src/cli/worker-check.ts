import { WorkerRenderer } from '../adapters/worker-renderer.ts';
import { WORKER_FILE } from '../app.ts';
import type { Config } from '../settings/config.ts';
import { formatByteSize } from './byte-size.ts';
import { type Finding, fault, ok } from './finding.ts';
import { formatCauses, silentLog } from './plain-log.ts';

/** Whether render processes start, and what they are kept from; one of each lane is enough to tell. */
export async function checkWorkers({ renderer }: Config): Promise<Finding> {
  const { light, heavy } = renderer.workers;
  const workers = new WorkerRenderer({
    ...renderer,
    workers: { light: 1, heavy: 1 },
    workerFile: WORKER_FILE,
    log: silentLog,
  });
  try {
    await workers.start();
    const { network, user, memoryBytes } = workers.confinement ?? {};
    const bounds = [
      `network: ${network}`,
      `user: ${user}`,
      `memory: ${memoryBytes === undefined ? 'not bounded' : formatByteSize(memoryBytes)}`,
    ];
    return ok('workers', `start; the service has ${light + heavy} (${bounds.join(', ')})`);
  } catch (error) {
    return fault('workers', `do not start${formatCauses(error)}`);
  } finally {
    workers.stop();
  }
}
