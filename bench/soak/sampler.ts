import { loadavg } from 'node:os';
import { epochMs } from '../harness/epoch.ts';
import {
  type CpuSeconds,
  type ProcessNumbers,
  readChildren,
  readCpuSeconds,
  readProcess,
} from '../harness/process-numbers.ts';

/** The service at one moment. */
export interface Sample {
  /** After the load began. */
  readonly atMs: number;
  readonly main: ProcessNumbers;
  readonly workers: {
    readonly count: number;
    readonly residentBytes: number;
    readonly threads: number;
  };
  /** Used so far. */
  readonly cpu: CpuSeconds;
  /** Processes of the whole machine that ran or wanted to, over the last minute (proc(5)). */
  readonly machineLoad: number;
}

/** Looks at the service and its workers now; `undefined` if it has ended. */
export function takeSample(pid: number, beganMs: number): Sample | undefined {
  const main = readProcess(pid);
  if (main === undefined) return undefined;
  const workers = readChildren(pid).flatMap((child) => readProcess(child) ?? []);
  const sum = (read: (numbers: ProcessNumbers) => number): number =>
    workers.reduce((total, numbers) => total + read(numbers), 0);
  return {
    atMs: epochMs() - beganMs,
    main,
    workers: {
      count: workers.length,
      residentBytes: sum(({ residentBytes }) => residentBytes),
      threads: sum(({ threads }) => threads),
    },
    cpu: readCpuSeconds(pid),
    machineLoad: loadavg()[0] ?? 0,
  };
}

/** Looks again and again, until it is stopped. */
export class Sampler {
  readonly samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number, beganMs: number, everyMs: number) {
    this.#timer = setInterval(() => {
      const sample = takeSample(pid, beganMs);
      if (sample !== undefined) this.samples.push(sample);
    }, everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
