import { randomBytes } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { describeLocation } from '../../config/variables/storage-settings.ts';
import { formatCauses } from '../../contract/errors.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { openResultStore } from '../../storage/open-storage.ts';
import { silentLog } from '../command.ts';
import { type Finding, fault, ok } from './finding.ts';

const STEP_TIMEOUT_MS = 10_000;

/** Writes, reads and removes a small rendering. */
export async function checkResultStore(config: Config, signal: AbortSignal): Promise<Finding> {
  const { resultStore } = config;
  if (resultStore === undefined) return ok('renderings', 'kept only in memory (RESULT_STORE)');
  const where = describeLocation(resultStore);
  const originKey = `attachments/0/0/darkroom-check-${randomBytes(8).toString('hex')}`;
  const address = { originKey, cacheKey: originKey, originalEtag: 'check', release: 'check' };
  let step = 'opened';
  try {
    const store = await openResultStore(resultStore, silentLog, { isInUse: true });
    try {
      step = 'written';
      await inTime(store.write(address, { body: randomBytes(16), mimeType: 'image/png' }));
      const within = AbortSignal.any([signal, AbortSignal.timeout(STEP_TIMEOUT_MS)]);
      const results = await Promise.allSettled([store.read(address, within, () => undefined)]);
      step = 'removed'; // even if reading failed
      await inTime(store.remove(`${originKey}/`));
      step = 'read';
      const [found] = results;
      if (found.status === 'rejected') throw found.reason;
      return found.value !== undefined
        ? ok('renderings', `${where}: one was written, read and removed`)
        : fault('renderings', `${where}: one was written, but then not found`);
    } finally {
      store.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    return fault('renderings', `${where}: one cannot be ${step}${formatCauses(error)}`);
  }
}

/** Waits even during a stop, so that the rendering is removed; with a deadline, since a disk may hang. */
function inTime<Result>(step: Promise<Result>): Promise<Result> {
  const onTimeout = (): Error => new Error(`no response within ${STEP_TIMEOUT_MS} ms`);
  return withDeadline(STEP_TIMEOUT_MS, undefined, onTimeout, () => step);
}
