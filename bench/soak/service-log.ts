import { readFileSync } from 'node:fs';
import { isStruck } from './faults/waves.ts';
import type { SoakRun } from './soak-run.ts';

/** pino's numbers. */
const LEVELS: Readonly<Record<number, string>> = { 40: 'warn', 50: 'error', 60: 'fatal' };

/** A line of the service's log, as far as it is looked at. */
interface LogLine {
  readonly level: number;
  /** Since 1970. */
  readonly time: number;
  readonly msg?: string;
  readonly code?: string;
  /** Of a line that says that the origin fails. */
  readonly storage?: string;
}

/** What the service has written at the level `warn` and above, or outside of its log. */
export type LogSummary = ReturnType<typeof readServiceLog>;

export function readServiceLog({ logFile, waves }: SoakRun) {
  /** Lines by level, message and code. */
  const counts = new Map<string, number>();
  /** Lines at `error` and above that no fault of the origin explains, and lines that are no log. */
  const unexplained: string[] = [];
  const isExplained = ({ code, storage, time }: LogLine): boolean =>
    (code === 'ORIGIN_ERROR' || code === 'ORIGIN_TIMEOUT' || storage !== undefined) &&
    isStruck(waves, time - 1, time + 1);
  for (const text of readFileSync(logFile, 'utf8').split('\n')) {
    if (text === '') continue;
    const line = parseLine(text);
    const level = line === undefined ? 'no log line' : LEVELS[line.level];
    if (level === undefined) continue;
    const kind = [level, line?.msg, line?.code].filter(Boolean).join(', ');
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    if (line === undefined || (line.level >= 50 && !isExplained(line))) unexplained.push(text);
  }
  return { counts, unexplained };
}

function parseLine(text: string): LogLine | undefined {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}
