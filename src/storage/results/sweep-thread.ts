import { platform, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { sweep } from './sweep.ts';

try {
  // On Linux, a priority applies to the calling thread; elsewhere, it would apply to the entire process.
  if (platform() === 'linux') setPriority(10);
} catch {
  // The system does not allow the change.
}

parentPort?.postMessage(sweep(workerData));
