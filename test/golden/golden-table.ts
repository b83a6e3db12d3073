import { readFileSync } from 'node:fs';
import { type SourceFormat, sourceFormats } from '../../src/contract/image-formats.ts';
import type { PixelRule } from '../support/images/image-comparison.ts';

/** Everything that lies below `fixtures/`. */
export const fixturesUrl = new URL('../../fixtures/', import.meta.url);

/** One row of `fixtures/goldens.tsv`: an original, a request, and what the result must be. */
export interface GoldenRow {
  /** `category/what it shows`; names the test. */
  readonly name: string;
  /** File of the original, below `fixtures/`. */
  readonly original: string;
  /** Request target; any snowflake stands in the place of `{id}`. */
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
  /** How near the pixels come to the golden's; `undefined`: the original's own bytes. */
  readonly pixels: PixelRule | undefined;
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
  return lines.map(parseRow);
}

function parseRow(line: string): GoldenRow {
  const cells = line.split('\t');
  if (cells.length !== 9 || cells.includes('')) {
    throw new Error(`Expected nine columns but received ${line}`);
  }
  const [name = '', original = '', target = '', golden = '', format = '', size = ''] = cells;
  const [delays = '', plays = '', pixels = ''] = cells.slice(6);
  const [widthPx, heightPx] = size.split('x').map(Number);
  return {
    name,
    original,
    target,
    golden: golden === 'original' ? undefined : golden,
    format: parseFormat(format, line),
    widthPx: widthPx ?? 0,
    heightPx: heightPx ?? 0,
    delaysMs: delays === '-' ? undefined : parseDelays(delays),
    plays: plays === '-' ? undefined : Number(plays),
    pixels: parseRule(pixels, golden, line),
  };
}

function parseFormat(text: string, line: string): SourceFormat {
  const format = Object.keys(sourceFormats).find((each) => each === text);
  if (format === undefined) throw new Error(`Expected a format but received ${text} in ${line}`);
  return format as SourceFormat;
}

const rules: readonly PixelRule[] = ['exact', 'lossy', 'palette'];

/** `verbatim` belongs to rows whose golden is the original itself, and to no other. */
function parseRule(text: string, golden: string, line: string): PixelRule | undefined {
  const rule = rules.find((each) => each === text);
  const isKnown = golden === 'original' ? text === 'verbatim' : rule !== undefined;
  if (!isKnown) throw new Error(`Expected another rule than ${text} in ${line}`);
  return rule;
}

function parseDelays(text: string): number[] {
  return text.split(' ').flatMap((run) => {
    const [count, delayMs] = run.includes('x') ? run.split('x').map(Number) : [1, Number(run)];
    return Array.from({ length: count ?? 0 }, () => delayMs ?? 0);
  });
}
