import { FORK_SERVER_FILE } from '../../app.ts';
import type { Config } from '../../config/config.ts';
import { countCores } from '../../config/machine-limits.ts';
import { formatCauses } from '../../contract/errors.ts';
import { unlessAborted } from '../../pipeline/abort.ts';
import { describeWorkers, listExposures } from '../../workers/confinement/report.ts';
import { WorkerPool } from '../../workers/pool.ts';
import { describeVideoSupport, type VideoSupport } from '../../workers/video/video-decoder.ts';
import { countOf, formatByteSize, silentLog } from '../command.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

export async function* checkWorkers(
  { renderer }: Config,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const { light, heavy } = renderer.workers;
  const workers = new WorkerPool({
    ...renderer,
    workers: { light: 1, heavy: Math.min(heavy, 1) },
    forkServerFile: FORK_SERVER_FILE,
    log: silentLog,
  });
  try {
    await unlessAborted(workers.start(), signal);
    const { confinement } = workers;
    if (confinement === undefined) throw new Error('the confinement is unknown');
    const description = describeWorkers(confinement);
    if (renderer.requiresConfinement && listExposures(confinement).length > 0) {
      yield fault('workers', `REQUIRE_CONFINEMENT is true. ${description}`);
      return;
    }
    const { isIsolated, user, memoryBytes } = confinement;
    const bounds = [
      `network: ${isIsolated ? 'none' : 'shared'}`,
      `user: ${user}`,
      `memory: ${memoryBytes === undefined ? 'not bounded' : formatByteSize(memoryBytes)}`,
    ];
    const machine = `${light} light and ${heavy} heavy workers on ${countOf(countCores(), 'core')}`;
    const start = `start; the service has ${machine} (${bounds.join(', ')})`;
    yield ok('workers', `${start}. ${description}`);
    yield describePosters(await unlessAborted(workers.videoSupport, signal), renderer.videoDecoder);
  } catch (error) {
    signal.throwIfAborted();
    yield fault('workers', `do not start${formatCauses(error)}`);
  } finally {
    workers.stop();
  }
}

/** A configured program that makes no poster is a fault. */
function describePosters(
  support: VideoSupport,
  { program }: Config['renderer']['videoDecoder'],
): Finding {
  const text = describeVideoSupport(support);
  const isExpected = support.isSupported ? support.isWhole : !support.isFault;
  if (isExpected) return ok('posters', text);
  const isFault = !support.isSupported && program !== 'auto';
  return isFault ? fault('posters', text) : warning('posters', text);
}
