import { STARTER_FILE } from '../../app.ts';
import type { Config } from '../../config/config.ts';
import { formatCauses } from '../../contract/errors.ts';
import { unlessAborted } from '../../pipeline/abort.ts';
import { describeConfinement, listDangers } from '../../workers/confinement/report.ts';
import { WorkerPool } from '../../workers/pool.ts';
import { formatByteSize, silentLog } from '../command.ts';
import { type Finding, fault, ok } from './finding.ts';

/**
 * Checks whether render processes start, and how they are confined; one process of each lane suffices.
 *
 * @throws `signal.reason`
 */
export async function checkWorkers({ renderer }: Config, signal: AbortSignal): Promise<Finding> {
  const { light, heavy } = renderer.workers;
  const workers = new WorkerPool({
    ...renderer,
    workers: { light: 1, heavy: 1 },
    starterFile: STARTER_FILE,
    log: silentLog,
  });
  try {
    await unlessAborted(workers.start(), signal);
    const { confinement } = workers;
    if (confinement === undefined) throw new Error('their confinement is unknown');
    const description = describeConfinement(confinement);
    if (renderer.requiresConfinement && listDangers(confinement).length > 0) {
      return fault('workers', `REQUIRE_CONFINEMENT is true. ${description}`);
    }
    const { isIsolated, user, memoryBytes } = confinement;
    const bounds = [
      `network: ${isIsolated ? 'none' : 'shared'}`,
      `user: ${user}`,
      `memory: ${memoryBytes === undefined ? 'not bounded' : formatByteSize(memoryBytes)}`,
    ];
    const start = `start; the service has ${light + heavy} (${bounds.join(', ')})`;
    return ok('workers', `${start}. ${description}`);
  } catch (error) {
    signal.throwIfAborted();
    return fault('workers', `do not start${formatCauses(error)}`);
  } finally {
    workers.stop();
  }
}
