import { unlessAborted } from '../pipeline/abort.ts';
import type { Renderer } from '../pipeline/ports.ts';
import { overloaded } from './worker-failures.ts';

/** Renders as soon as the workers are ready; where they cannot start, renders are refused as `OVERLOADED`. */
export function renderOnceStarted(workers: Renderer, starting: Promise<void>): Renderer {
  let isStarted = false;
  const ready = starting.then(
    () => {
      isStarted = true;
    },
    (cause: Error) => Promise.reject(overloaded(cause)),
  );
  ready.catch(() => undefined); // it may be that no request waits for it
  return {
    render: async (original, job, options) => {
      if (!isStarted) await unlessAborted(ready, options.signal);
      return workers.render(original, job, options);
    },
  };
}
