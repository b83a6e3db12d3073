/**
 * Asks for one URL again and again, from a thread of its own, so that nothing else in the test delays
 * what is measured. Tells for each response how long it took, in milliseconds.
 */
import { Agent, get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

const { url, intervalMs } = workerData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function ask() {
  const startedMs = performance.now();
  const request = get(url, { agent }, (response) => {
    response.resume();
    response.once('end', () => {
      const tookMs = performance.now() - startedMs;
      parentPort?.postMessage({ status: response.statusCode, tookMs });
      setTimeout(ask, Math.max(0, intervalMs - tookMs));
    });
  });
  request.once('error', (error) => parentPort?.postMessage({ error: String(error) }));
}

ask();
