import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MemoryPeaks } from '../support/processes/process-memory.ts';
import { LOST_WORKER } from './service-log.ts';
import type { Shot } from './service-under-fire.ts';

/** One request of a hostile original, and what it cost; sizes in bytes, times in milliseconds. */
export interface Cost extends Shot {
  /** Name of the original, enough to make it again. */
  readonly name: string;
  readonly way: string;
  /** Most memory meanwhile, and just before; absent where several requests were under way at once. */
  readonly peaks?: MemoryPeaks;
  readonly before?: MemoryPeaks;
  /** Slowest answer to the probe meanwhile. */
  readonly probeMs?: number;
  /** How long the main thread was running in that time. */
  readonly probeRanMs?: number;
}

/** From here on something is worth a line of the report. */
const SLOW_MS = 2_000;
const STALL_MS = 100;
const LARGE_BYTES = 512 * 2 ** 20;

const FOLDER = 'test-report/hostile';

/** Keeps what the requests cost, and writes it down where a person will look. */
export class FireReport {
  readonly #suite: string;
  readonly #costs: Cost[] = [];
  readonly #notes: string[] = [];

  constructor(suite: string) {
    this.#suite = suite;
    rmSync(join(FOLDER, suite), { recursive: true, force: true });
  }

  add(cost: Cost): void {
    // The answers themselves would fill the memory.
    this.#costs.push({ ...cost, answer: { ...cost.answer, body: Buffer.alloc(0) } });
  }

  note(line: string): void {
    this.#notes.push(line);
  }

  /** Leaves an original and its request for reproduction; tells where. */
  keep(name: string, target: string, original: Buffer, faults: readonly string[]): string {
    const folder = join(FOLDER, this.#suite, name.replace(/[^\p{L}\d.]+/gu, '-').slice(0, 80));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'original'), original);
    writeFileSync(join(folder, 'request.txt'), [target, ...faults, ''].join('\n'));
    return folder;
  }

  /** Writes all costs as a table, and the noteworthy ones with the notes as text; prints the text. */
  write(reasonOf: (target: string) => string): void {
    mkdirSync(FOLDER, { recursive: true });
    const rows = this.#costs.map((cost) => toRow(cost, reasonOf(cost.target)));
    const head =
      'name\tway\tstatus\tms\tworker MiB\tmain MiB\tprobe ms\tmain thread ms\tbytes\trequest\treason';
    writeFileSync(join(FOLDER, `${this.#suite}.tsv`), `${[head, ...rows].join('\n')}\n`);
    const lines = [
      ...this.#notes,
      ...this.#costs.flatMap((cost) => describeCost(cost, reasonOf(cost.target))),
    ];
    const text = `${[`Hostile suite: ${this.#suite}`, ...lines].join('\n  ')}\n`;
    writeFileSync(join(FOLDER, `${this.#suite}.txt`), text);
    process.stdout.write(text);
  }
}

function toRow(cost: Cost, reason: string): string {
  const { name, way, target, answer, peaks, probeMs, probeRanMs } = cost;
  return [
    name,
    way,
    answer.status,
    Math.round(answer.tookMs),
    mebibytes(peaks?.worker),
    mebibytes(peaks?.main),
    Math.round(probeMs ?? 0),
    Math.round(probeRanMs ?? 0),
    answer.headers['content-length'],
    target,
    reason.replace(/\s+/g, ' ').slice(0, 200),
  ].join('\t');
}

function describeCost(cost: Cost, reason: string): string[] {
  const { name, way, answer, peaks, before, probeMs = 0, probeRanMs = 0 } = cost;
  const grown = (who: keyof MemoryPeaks): boolean =>
    (peaks?.[who] ?? 0) > Math.max(LARGE_BYTES, 1.1 * (before?.[who] ?? 0));
  const remarks = [
    ...(answer.status === 504 ? ['not done within the deadline'] : []),
    ...(answer.status !== 504 && LOST_WORKER.test(reason) ? [`lost a worker: ${reason}`] : []),
    ...(answer.tookMs > SLOW_MS ? [`${Math.round(answer.tookMs)} ms`] : []),
    ...(grown('worker') ? [`worker of ${mebibytes(peaks?.worker)} MiB`] : []),
    ...(grown('main') ? [`main of ${mebibytes(peaks?.main)} MiB`] : []),
    // Waiting for a CPU is no stall: of the time, the thread must have been running for most.
    ...(probeRanMs > STALL_MS
      ? [`event loop busy for ${Math.round(probeRanMs)} of ${Math.round(probeMs)} ms`]
      : []),
  ];
  return remarks.length === 0 ? [] : [`${name}, ${way}: ${answer.status}; ${remarks.join('; ')}`];
}

function mebibytes(bytes: number | undefined): number | string {
  return bytes === undefined ? '' : Math.round(bytes / 2 ** 20);
}
