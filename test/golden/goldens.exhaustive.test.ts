import { describe } from 'vitest';
import { describeGoldens } from './golden-run.ts';
import { isShort, readGoldenTable } from './golden-table.ts';

const rows = readGoldenTable();
const inShort = isShort(rows);

describe('all other goldens', () => {
  describeGoldens(
    'goldens-exhaustive.html',
    rows.filter((row) => !inShort(row)),
    6,
  );
});
