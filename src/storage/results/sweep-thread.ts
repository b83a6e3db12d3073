import { platform, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { sweep } from './sweep.ts';

try {
  // On Linux, a priority belongs to the calling thread; elsewhere, it would be that of the whole process.
  if (platform() === 'linux') setPriority(10);
} catch {
  // The process has a lower priority, or the system allows no change.
}

parentPort?.postMessage(sweep(workerData));
