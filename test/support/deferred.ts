import { setImmediate } from 'node:timers/promises';

/** Creates a promise that the test settles. */
export function defer<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Runs all pending promises, next ticks and immediates. */
export async function settle(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await setImmediate();
}

/** Blocks this thread, as SIGSTOP does. */
export function blockThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
