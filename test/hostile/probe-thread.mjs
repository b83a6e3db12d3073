/**
 * Asks for one URL ten times a second, from a thread of its own, so that nothing else in the test delays what is
 * measured. Tells for each response how long it took, in milliseconds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const INTERVAL_MS = 100;

for (;;) {
  const startedMs = performance.now();
  const response = await fetch(workerData);
  await response.arrayBuffer();
  const tookMs = performance.now() - startedMs;
  parentPort?.postMessage({ status: response.status, tookMs });
  await sleep(Math.max(0, INTERVAL_MS - tookMs));
}
