import { describe } from 'vitest';
import { describeGoldens } from './golden-run.ts';
import { isShort, readGoldenTable } from './golden-table.ts';

const rows = readGoldenTable();
const inShort = isShort(rows);

describe('all other goldens', () => {
  describeGoldens(
    'goldens-exhaustive',
    rows.filter((row) => !inShort(row)),
    6,
  );
});
