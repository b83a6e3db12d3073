import type { RenderJob } from '../../../src/pipeline/render/render-job.ts';
import { anyJob, REAL_WORKER, type usePools } from '../../support/processes/worker-pool.ts';

/** A job that `samples.png` is right for. */
const sampleSize = { widthPx: 128, heightPx: 128 };
export const sampleJob: RenderJob = { ...anyJob, originalSize: sampleSize, size: sampleSize };

/** Starts a real worker with the `start` of `usePools`; gives its pool, and a way to have it render in no hurry. */
export async function startReal(start: ReturnType<typeof usePools>, memoryBytes?: number) {
  const { renderer } = await start({
    workerFile: REAL_WORKER,
    ...(memoryBytes !== undefined && { memoryBytes }),
  });
  const render = (bytes: Uint8Array, job = sampleJob) => {
    const { signal } = new AbortController();
    return renderer.render(bytes, job, { lane: 'light', timeoutMs: 60_000, signal });
  };
  return { renderer, render };
}
