import { unlessAborted } from '../pipeline/abort.ts';
import type { Renderer } from '../pipeline/ports.ts';
import { overloaded } from './worker-failures.ts';

/** Renders once the workers are ready; if they cannot start, renders are rejected as `OVERLOADED`. */
export function renderOnceStarted(workers: Renderer, starting: Promise<void>): Renderer {
  let isStarted = false;
  const ready = starting.then(
    () => {
      isStarted = true;
    },
    (cause: Error) => Promise.reject(overloaded(cause)),
  );
  ready.catch(() => undefined); // perhaps no request waits for it
  return {
    render: async (original, job, options) => {
      if (!isStarted) await unlessAborted(ready, options.signal);
      return workers.render(original, job, options);
    },
  };
}
