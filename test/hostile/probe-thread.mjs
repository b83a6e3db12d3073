/** Requests a URL ten times a second in its own thread, which the test does not delay. Posts each response time in ms. */
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
