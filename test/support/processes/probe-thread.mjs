/**
 * Asks for one URL again and again, from a thread of its own, so that nothing else in the test delays
 * what is measured. Tells for each response when it was asked for (Unix time), how long it took, and
 * how long the server's main thread has been running meanwhile: only that much is its own doing, the
 * rest is other processes'. All in milliseconds.
 */
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

const { url, pid, intervalMs } = workerData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function runMs() {
  const [runNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(runNs) / 1e6;
}

function ask() {
  const startedMs = performance.timeOrigin + performance.now();
  const ranMs = runMs();
  const request = get(url, { agent }, (response) => {
    response.resume();
    response.once('end', () => {
      const tookMs = performance.timeOrigin + performance.now() - startedMs;
      parentPort?.postMessage({
        status: response.statusCode,
        startedMs,
        tookMs,
        ranMs: runMs() - ranMs,
      });
      setTimeout(ask, Math.max(0, intervalMs - tookMs));
    });
  });
  request.once('error', (error) => parentPort?.postMessage({ error: String(error) }));
}

ask();
