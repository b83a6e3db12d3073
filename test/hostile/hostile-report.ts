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
const COLUMNS =
  'name way status ms worker/MiB main/MiB probe/ms main-thread/ms bytes request reason'.split(' ');

/** In whole mebibytes. */
export const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

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
  readonly #suite: string;
  readonly #rows: (readonly [target: string, cells: readonly (string | number)[]])[] = [];
  readonly #notes: string[] = [];

  constructor(suite: string) {
    this.#suite = suite;
    rmSync(join(FOLDER, suite), { recursive: true, force: true });
  }

  add({ name, way, target, response, peaks, probe }: Cost): void {
    this.#rows.push([
      target,
      [
        ...[name, way, response.status, Math.round(response.tookMs)],
        ...[peaks?.worker, peaks?.main].map((bytes) =>
          bytes === undefined ? '' : mebibytes(bytes),
        ),
        ...[probe?.tookMs, probe?.ranMs].map((ms = 0) => Math.round(ms)),
        ...[response.headers.get('content-length') ?? '', target],
      ],
    ]);
  }

  note(line: string): void {
    this.#notes.push(line);
  }

  /** Writes all costs as a table, and the notes as text; prints the text. */
  write(refusals: ReadonlyMap<string, Refusal>): void {
    mkdirSync(FOLDER, { recursive: true });
    const rows = this.#rows.map(([target, cells]) => {
      const reason = refusals.get(target)?.reason ?? '';
      return [...cells, reason.replace(/\s+/g, ' ').slice(0, 200)];
    });
    const table = [COLUMNS, ...rows].map((cells) => `${cells.join('\t')}\n`).join('');
    const text = `${[`Hostile suite: ${this.#suite}`, ...this.#notes].join('\n  ')}\n`;
    writeFileSync(join(FOLDER, `${this.#suite}.tsv`), table);
    writeFileSync(join(FOLDER, `${this.#suite}.txt`), text);
    process.stdout.write(text);
  }
}
