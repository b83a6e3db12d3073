import { readFileSync } from 'node:fs';
import type { SourceFormat } from '../../src/contract/image-formats.ts';
import type { PixelRule } from '../support/images/image-comparison.ts';

/** Everything that lies below `fixtures/`. */
export const fixturesUrl = new URL('../../fixtures/', import.meta.url);

/** One row of `fixtures/goldens.tsv`: an original, a request, and what the result must be. */
export interface GoldenRow {
  /** `category/what it shows`; names the test. */
  readonly name: string;
  /** File of the original, below `fixtures/`. */
  readonly original: string;
  /** Request target; a snowflake of the original's own stands in the place of `{id}`. */
  readonly target: string;
  /** File below `fixtures/expected/`; `undefined`: the original's own bytes. */
  readonly golden: string | undefined;
  readonly format: SourceFormat;
  readonly widthPx: number;
  readonly heightPx: number;
  /** One delay per frame in milliseconds; `undefined` for a still. */
  readonly delaysMs: readonly number[] | undefined;
  /** How often the animation plays, 0 for ever; `undefined` for a still. */
  readonly plays: number | undefined;
  readonly pixels: PixelRule;
}

const columns = 'name original target golden format size delays plays pixels';

/**
 * Reads `fixtures/goldens.tsv`. Size, delays and plays in it are worked out from the contract
 * (contract §3) by hand, never by the code under test.
 *
 * Delays are written like `4x80 120`: four of 80 ms, then one of 120 ms.
 */
export function readGoldenTable(): GoldenRow[] {
  const [head, ...lines] = readFileSync(new URL('goldens.tsv', fixturesUrl), 'utf8')
    .trimEnd()
    .split('\n');
  if (head?.split('\t').join(' ') !== columns) throw new Error(`Expected the columns ${columns}`);
  const rows = lines.map(parseRow);
  const ids = new Map([...new Set(rows.map(({ original }) => original))].map((o, i) => [o, i + 1]));
  return rows.map((row) => ({
    ...row,
    target: row.target.replace('{id}', String(ids.get(row.original))),
  }));
}

/**
 * Whether a row is one that `npm test` compares: the first of each kind and format, and of each category. All
 * others are compared by the exhaustive suite.
 */
export function isShort(rows: readonly GoldenRow[]): (row: GoldenRow) => boolean {
  const firsts = new Map<string, GoldenRow>();
  for (const row of rows) {
    const [category, shown = ''] = row.name.split('/');
    const kind = shown.replace(/-(?:animated|png|jpg|webp|gif|bare|sized|high|not|still).*$/, '');
    const group = category === 'kinds' ? `${kind} ${row.format}` : category;
    if (group !== undefined && !firsts.has(group)) firsts.set(group, row);
  }
  const short = new Set(firsts.values());
  return (row) => short.has(row);
}

function parseRow(line: string): GoldenRow {
  const [name, original, target, golden, format, size, delays, plays, pixels] = line.split('\t');
  if (
    !name ||
    !original ||
    !target ||
    !golden ||
    !format ||
    !size ||
    !delays ||
    !plays ||
    !pixels
  ) {
    throw new Error(`Expected nine columns but received ${line}`);
  }
  const [widthPx, heightPx] = size.split('x').map(Number);
  return {
    name,
    original,
    target,
    golden: golden === 'original' ? undefined : golden,
    format: format as SourceFormat,
    widthPx: widthPx ?? 0,
    heightPx: heightPx ?? 0,
    delaysMs: delays === '-' ? undefined : parseDelays(delays),
    plays: plays === '-' ? undefined : Number(plays),
    pixels: pixels as PixelRule,
  };
}

function parseDelays(text: string): number[] {
  return text.split(' ').flatMap((run) => {
    const [count, delayMs] = run.includes('x') ? run.split('x').map(Number) : [1, Number(run)];
    return Array.from({ length: count ?? 0 }, () => delayMs ?? 0);
  });
}
