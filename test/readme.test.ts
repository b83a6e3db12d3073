import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { errorRegistry } from '../src/media/errors.ts';
import { ASSET_WIDTHS_PX } from '../src/media/limits.ts';
import { resourceRows } from '../src/media/media-resource.ts';

const readme = readFileSync('README.md', 'utf8');

function rowsOf(heading: string): string[][] {
  const section = new RegExp(`^## ${heading}$.*?(?=^## )`, 'ms').exec(readme)?.[0] ?? '';
  return [...section.matchAll(/^\| (.*) \|$/gm)].map((match) => (match[1] ?? '').split(' | '));
}

describe('the README', () => {
  test('has one row per error of the registry, and no other', () => {
    const documented = rowsOf('Errors').flatMap(([status, code]) =>
      /^\d{3}$/.test(status ?? '') ? [`${status} ${code}`] : [],
    );
    const registered = Object.entries(errorRegistry).map(
      ([code, { status }]) => `${status} \`${code}\``,
    );
    expect(documented.sort()).toEqual(registered.sort());
  });

  test('has one row per resource, with its extensions and key', () => {
    const documented = rowsOf('URLs').filter(([, path]) => path?.startsWith('`/'));
    expect(documented).toHaveLength(Object.keys(resourceRows).length);
    for (const row of Object.values(resourceRows)) {
      const path = row.template.replace('{index}.{ext}', '{index}.png');
      const found = documented.find((cells) => cells[1]?.startsWith(`\`${path}\``));
      expect(found?.[2], path).toBe(row.extensions?.join(' ') ?? 'any');
      if (row.originKey !== undefined) {
        expect(found?.[3], path).toBe(`\`${row.originKey.replace(/\{\w+_hash\}/, '{hash}')}\``);
      }
    }
  });

  test('lists every size', () => {
    expect(readme).toContain(ASSET_WIDTHS_PX.join(' '));
  });
});
