import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type SourceFormat, sourceFormats } from '../../src/contract/image-formats.ts';

export const fixturesUrl = new URL('../../fixtures/', import.meta.url);

/** A row of `fixtures/goldens.tsv`: an original, a request, and the expected result. */
export type GoldenRow = ReturnType<typeof readGoldenTable>[number];

const columns = 'name original target golden format size delays plays pixels';

const text = z.string().min(1);
const formats = Object.keys(sourceFormats) as SourceFormat[];
const rules = ['exact', 'lossy', 'palette', 'verbatim'] as const;
const cells = [text, text, text, text, z.enum(formats), z.string().regex(/^\d+x\d+$/)] as const;
const tableSchema = z.array(
  z
    .tuple([...cells, text, text, z.enum(rules)])
    .refine(({ 3: golden, 8: rule }) => (golden === 'original') === (rule === 'verbatim')),
);

/**
 * Reads `fixtures/goldens.tsv`. Size, delays and plays were derived from the contract (§3) by hand, never by the code
 * under test. `4x80 120` means four delays of 80 ms, then one of 120 ms.
 */
export function readGoldenTable() {
  const [head, ...lines] = readFileSync(new URL('goldens.tsv', fixturesUrl), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  if (head?.join(' ') !== columns) throw new Error(`Expected the columns ${columns}`);
  return tableSchema.parse(lines).map((row) => {
    const [name, original, target, golden, format, size, delays, plays, rule] = row;
    const [widthPx = 0, heightPx = 0] = size.split('x').map(Number);
    return {
      // `{id}` in the request's target stands for any snowflake.
      ...{ name, original, target, format, widthPx, heightPx },
      /** File below `fixtures/expected/`; `undefined`, like the rule, for an unmodified original. */
      golden: golden === 'original' ? undefined : golden,
      pixels: rule === 'verbatim' ? undefined : rule,
      /** One per frame; `undefined`, like `plays` (0: forever), for a still. */
      delaysMs: delays === '-' ? undefined : parseDelays(delays),
      plays: plays === '-' ? undefined : Number(plays),
      expectations: row.slice(4),
    };
  });
}

function parseDelays(text: string): number[] {
  return text.split(' ').flatMap((run) => {
    const [count = 0, delayMs = 0] = run.includes('x')
      ? run.split('x').map(Number)
      : [1, Number(run)];
    return Array(count).fill(delayMs);
  });
}
