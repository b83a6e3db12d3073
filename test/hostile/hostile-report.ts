import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProbeResponse } from '../support/processes/latency-probe.ts';
import type { MemoryPeaks } from '../support/processes/process-memory.ts';
import type { Refusal } from './service-log.ts';
import type { TimedResponse } from './verdict.ts';

/** One request of a hostile original, and what it cost. */
export interface Cost {
  /** Name of the original, enough to make it again. */
  readonly name: string;
  readonly way: string;
  readonly target: string;
  readonly response: TimedResponse;
  /** Most memory meanwhile; absent where several requests were under way at once. */
  readonly peaks?: MemoryPeaks;
  /** Slowest response to the probe meanwhile. */
  readonly probe?: ProbeResponse | undefined;
}

const FOLDER = 'test-report/hostile';
const HEAD =
  'name\tway\tstatus\tms\tworker MiB\tmain MiB\tprobe ms\tmain thread ms\tbytes\trequest';

/** Leaves an original and its request for reproduction; returns the folder. */
export function keepOriginal(
  suite: string,
  name: string,
  target: string,
  original: Buffer,
  faults: readonly string[],
): string {
  const folder = join(FOLDER, suite, name.replace(/[^\p{L}\d.]+/gu, '-').slice(0, 80));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'original'), original);
  writeFileSync(join(folder, 'request.txt'), [target, ...faults, ''].join('\n'));
  return folder;
}

/** Keeps what the requests of a suite cost, for `test-report/hostile`. */
export class HostileReport {
  readonly suite: string;
  readonly #costs: Cost[] = [];
  readonly #notes: string[] = [];

  constructor(suite: string) {
    this.suite = suite;
    rmSync(join(FOLDER, suite), { recursive: true, force: true });
  }

  add(cost: Cost): void {
    // The bodies themselves would fill the memory.
    this.#costs.push({ ...cost, response: { ...cost.response, body: Buffer.alloc(0) } });
  }

  note(line: string): void {
    this.#notes.push(line);
  }

  /** Writes all costs as a table, and the notes as text; prints the text. */
  write(refusals: ReadonlyMap<string, Refusal>): void {
    mkdirSync(FOLDER, { recursive: true });
    const rows = this.#costs.map((cost) => {
      const reason = refusals.get(cost.target)?.reason ?? '';
      return `${formatRow(cost)}\t${reason.replace(/\s+/g, ' ').slice(0, 200)}`;
    });
    writeFileSync(
      join(FOLDER, `${this.suite}.tsv`),
      `${[`${HEAD}\treason`, ...rows].join('\n')}\n`,
    );
    const lines = [`Hostile suite: ${this.suite}`, ...this.#notes];
    writeFileSync(join(FOLDER, `${this.suite}.txt`), `${lines.join('\n  ')}\n`);
    process.stdout.write(`${lines.join('\n  ')}\n`);
  }
}

function formatRow({ name, way, target, response, peaks, probe }: Cost): string {
  return [
    name,
    way,
    response.status,
    Math.round(response.tookMs),
    peaks === undefined ? '' : mebibytes(peaks.worker),
    peaks === undefined ? '' : mebibytes(peaks.main),
    Math.round(probe?.tookMs ?? 0),
    Math.round(probe?.ranMs ?? 0),
    response.headers.get('content-length') ?? '',
    target,
  ].join('\t');
}

/** In whole mebibytes. */
export function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
