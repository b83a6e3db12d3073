import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { MediaError } from '../../src/contract/errors.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { findCulprit } from './fault-waves.ts';
import type { SoakRun } from './soak-run.ts';

/** pino's numbers. */
const LEVELS: Readonly<Record<number, string>> = { 40: 'warn', 50: 'error', 60: 'fatal' };

const lineForm = z.object({
  level: z.number(),
  time: z.number(),
  msg: z.string(),
  code: z.string().optional(),
  url: z.string().optional(),
});

/** What the service has written at the level `warn` and above, or outside of its log. */
export interface LogSummary {
  /** Lines by level, message and code. */
  readonly counts: ReadonlyMap<string, number>;
  /** Lines at `error` and above that no fault of the origin explains, and lines that are no log. */
  readonly unexplained: readonly string[];
}

/** Reads the log of a run. */
export function readServiceLog(run: Pick<SoakRun, 'logFile' | 'waves' | 'beganMs'>): LogSummary {
  const counts = new Map<string, number>();
  const unexplained: string[] = [];
  for (const text of readFileSync(run.logFile, 'utf8').split('\n')) {
    if (text === '') continue;
    const line = parseLine(text);
    const level = line === undefined ? 'no log line' : LEVELS[line.level];
    if (level === undefined) continue;
    const kind = [level, line?.msg, line?.code].filter(Boolean).join(', ');
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    if (line === undefined || (line.level >= 50 && !isExplained(line, run))) unexplained.push(text);
  }
  return { counts, unexplained };
}

function parseLine(text: string): z.infer<typeof lineForm> | undefined {
  try {
    return lineForm.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function isExplained(
  { code, url, time }: z.infer<typeof lineForm>,
  { waves, beganMs }: Pick<SoakRun, 'waves' | 'beganMs'>,
): boolean {
  if (code !== 'ORIGIN_ERROR' && code !== 'ORIGIN_TIMEOUT') return false;
  const key = url === undefined ? undefined : originKeyOf(url);
  const atMs = time - beganMs;
  return key !== undefined && findCulprit(waves, key, atMs - 1, atMs + 1, 'harmful') !== undefined;
}

function originKeyOf(url: string): string | undefined {
  try {
    const target = parseTarget(url);
    return target.kind === 'media' ? target.request.originKey : undefined;
  } catch (error) {
    if (error instanceof MediaError) return undefined;
    throw error;
  }
}
