import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { settingNames } from '../../src/config/settings.ts';
import { formatConfiguration } from '../../tools/configuration-document.ts';

/** `npm run configuration` writes it anew. */
const FILE = 'docs/configuration.md';

describe('the document of the configuration', () => {
  const text = formatConfiguration();

  test('is the committed file', () => {
    if (process.env.UPDATE_CONFIGURATION === '1') writeFileSync(FILE, text);
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  test('has a row for each variable, with a form and a meaning', () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \|[^|]*\| [^|]+ \| \S[^|]*\|$/gm)];
    expect(rows.map(([, name]) => name)).toEqual([...settingNames]);
  });
});
