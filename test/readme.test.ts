import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorRegistry } from '../src/contract/errors.ts';
import { type EncoderSettings, outputFormats } from '../src/contract/image-formats.ts';
import { type QueryParameter, queryParameters } from '../src/contract/media-query.ts';
import { resourceRows } from '../src/contract/resources.ts';

const readme = readFileSync('README.md', 'utf8');
const contract = readFileSync('docs/contract.md', 'utf8');

/** The cells of the tables below a heading, and of no other. */
function rowsOf(heading: string, text = readme): string[][] {
  const section = new RegExp(`^## ${heading}$.*?(?=^## |(?![^]))`, 'ms').exec(text)?.[0] ?? '';
  return [...section.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) =>
    row.split('|').map((cell) => cell.trim()),
  );
}

/** What the README calls those who have a query. */
const queries = { assets: 'image', stickers: 'sticker', attachments: 'external' } as const;
type Asked = keyof typeof queries;
const asked = Object.keys(queries) as Asked[];

/** Of whom a parameter is, in one word. */
const owners: Readonly<Record<string, readonly Asked[]>> = {
  all: asked,
  assets: ['assets', 'stickers'],
  attachments: ['attachments'],
};

/** Words for a default that is no value of the parameter. */
const noDefaults = ['none', 'their own width', "the original's"];

/** What leaving a parameter out comes to, of whom: as in "128; stickers: their own width". */
function readDefault(cell: string, whose: Asked): string | undefined {
  const [usual = '', ...others] = cell.split('; ');
  const own = others.find((other) => other.split(':')[0]?.split(' and ').includes(whose));
  const text = (own?.replace(/^[^:]*: /, '') ?? usual).replaceAll('`', '');
  return noDefaults.includes(text) ? undefined : text;
}

/** Values that a parameter may have, as its cell has to have them. */
function tellValues({ form }: QueryParameter): string {
  if (form.kind === 'integer') return `${form.min} to ${form.max}`;
  const isNumeric = form.values.every((value) => /^\d+$/.test(value));
  return isNumeric ? form.values.join(' ') : form.values.map((value) => `\`${value}\``).join(', ');
}

/** What a quality means, in the README's words. */
function tellQuality(encoder: EncoderSettings): string {
  if (encoder.colours !== undefined) return `${encoder.colours} colours`;
  if (encoder.palette !== undefined) return encoder.palette ? 'palette' : 'true colour';
  if (encoder.lossless) return 'VP8L, every bit';
  return `q ${encoder.quality}${encoder.chromaSubsampling === '4:4:4' ? ', 4:4:4' : ''}`;
}

/** All files of a folder, by their paths below it. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** The folder of `fixtures` that a file is in, as the README writes it. */
const folderOf = (file: string): string => `\`${file.slice(0, file.indexOf('/') + 1)}\``;

/** A table of tab-separated values, a record per line. */
function readTable(file: string): Record<string, string>[] {
  const [head = [], ...lines] = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  return lines.map((cells) => Object.fromEntries(head.map((name, i) => [name, cells[i] ?? ''])));
}

/** The tables that the README has for readers, and the contract for those who cite it. */
const contractTables = [
  { name: 'the README', text: readme, urls: 'URLs', errors: 'Errors' },
  { name: 'the contract', text: contract, urls: '1. Resources', errors: '5. Errors' },
];

describe.each(contractTables)('$name', ({ text, urls, errors }) => {
  test('has one row per error of the registry, and no other', () => {
    const documented = rowsOf(errors, text).flatMap(([status, code]) =>
      /^\d{3}$/.test(status ?? '') ? [`${status} ${code}`] : [],
    );
    const registered = Object.entries(errorRegistry).map(
      ([code, { status }]) => `${status} \`${code}\``,
    );
    expect(documented.sort()).toEqual(registered.sort());
  });

  test('has one row per resource, with its extensions and key', () => {
    const documented = rowsOf(urls, text).filter(([, path]) => path?.startsWith('`/'));
    expect(documented).toHaveLength(Object.keys(resourceRows).length);
    for (const [name, row] of Object.entries(resourceRows)) {
      const path = row.template.replace('{index}.{ext}', '{index}.png');
      const found = documented.find((cells) => cells[1]?.startsWith(`\`${path}\``));
      expect(found?.[0]?.toLowerCase(), path).toBe(name);
      expect(found?.[2], path).toBe(row.extensions?.join(' ') ?? 'any');
      if (row.originKey !== undefined) {
        expect(found?.[3], path).toBe(`\`${row.originKey.replace(/\{\w+_hash\}/, '{hash}')}\``);
      }
    }
  });
});

describe('the contract', () => {
  test('has the query of every resource, and every value of its parameters', () => {
    const resources = rowsOf('1. Resources', contract).filter(([, path]) => path?.startsWith('`/'));
    const queryRows = rowsOf('2. Queries', contract);
    expect(resources.map((cells) => cells[4])).toEqual(
      Object.values(resourceRows).map(({ query }) => query),
    );
    for (const kind of new Set(Object.values(resourceRows).map(({ query }) => query))) {
      for (const parameter of queryParameters[kind]) {
        const cells = queryRows.filter(([name]) => name?.includes(`\`${parameter.name}\``));
        const values = cells
          .map((row) => row[2])
          .filter((cell) => cell?.includes(tellValues(parameter)));
        expect(values, `${parameter.name} of ${kind}`).not.toEqual([]);
      }
    }
  });
});

describe('the README', () => {
  test('has every parameter, of whom it is, its default and its values', () => {
    const documented = rowsOf('URLs').filter(
      (cells) => cells.length === 4 && /^`[a-z]+`/.test(cells[0] ?? ''),
    );
    const names = documented.flatMap(([cell = '']) => cell.replaceAll('`', '').split(', '));
    const known = asked.flatMap((whose) => queryParameters[queries[whose]]);
    expect(names.toSorted()).toEqual([...new Set(known.map(({ name }) => name))].toSorted());
    for (const [cell = '', of = '', fallback = '', values] of documented) {
      for (const name of cell.replaceAll('`', '').split(', ')) {
        for (const whose of asked) {
          const parameter = queryParameters[queries[whose]].find((each) => each.name === name);
          expect(parameter !== undefined, `${name} of ${whose}`).toBe(owners[of]?.includes(whose));
          if (parameter === undefined) continue;
          expect(readDefault(fallback, whose), `${name} of ${whose}`).toBe(parameter.default);
          expect(values).toContain(tellValues(parameter));
        }
      }
    }
  });

  test('has what each quality means in each format', () => {
    const head = rowsOf('URLs').findIndex((cells) => cells.includes('`lossless`'));
    const documented = rowsOf('URLs').slice(head + 1);
    expect(documented.map(([format]) => format).toSorted()).toEqual(
      Object.keys(outputFormats).toSorted(),
    );
    for (const [format, { qualities }] of Object.entries(outputFormats)) {
      const { high, low, lossless } = qualities;
      expect(documented.find(([name]) => name === format)).toEqual([
        format,
        ...[high, low, lossless].map(tellQuality),
      ]);
    }
  });

  test('has ten settings, with their defaults', () => {
    const all = readFileSync('docs/configuration.md', 'utf8').matchAll(
      /^\| (`\w+`) \| *(.*?) *\|/gm,
    );
    const defaults = new Map([...all].map(([, name = '', value = '']) => [name, value]));
    const documented = rowsOf('Settings')
      .slice(1)
      .filter(([name]) => name?.startsWith('`'));
    expect(documented).toHaveLength(10);
    for (const [name = '', value] of documented)
      expect([name, defaults.get(name)]).toEqual([name, value]);
  });

  test('is read within some minutes', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(200);
  });

  test('links to every document, and no document to one that does not exist', () => {
    const files = readdirSync('docs').filter((file) => file.endsWith('.md'));
    for (const file of files) expect(readme).toContain(`(docs/${file})`);
    const documents = ['README.md', 'CHANGELOG.md', ...files.map((file) => join('docs', file))];
    for (const document of documents) {
      const text = readFileSync(document, 'utf8');
      for (const [, path = '', heading] of text.matchAll(
        /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
      )) {
        const target = path === '' ? document : join(dirname(document), path);
        expect(existsSync(target), `${document}: ${target}`).toBe(true);
        if (heading !== undefined) {
          const anchors = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(
            ([, title = '']) =>
              title
                .toLowerCase()
                .replace(/[^\w -]/g, '')
                .replaceAll(' ', '-'),
          );
          expect(anchors, `${document}: ${target}`).toContain(heading);
        }
      }
    }
  });

  test('names the list of every folder of images, and each has a line with its licence', () => {
    const folders = readdirSync('fixtures', { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() && entry.name !== 'tls' ? [`\`${entry.name}/\``] : [],
    );
    const documented = rowsOf('Licence').filter(([folder]) => folder?.endsWith('/`'));
    expect(documented.map(([folder]) => folder).toSorted()).toEqual(folders.toSorted());
    for (const [folder = '', cell = ''] of documented) {
      const list = join('fixtures', cell.replace(/^`([^`]*)`.*$/, '$1'));
      const lines = readTable(list);
      if (folder === '`expected/`') {
        // That each of them has a line is tested with the goldens.
        for (const { original = '' } of lines) expect(folders).toContain(folderOf(original));
        continue;
      }
      const below = join('fixtures', folder.replaceAll('`', ''));
      const files = filesBelow(below).filter((file) => join(below, file) !== list);
      expect(lines.map(({ file, key }) => file ?? key).toSorted(), list).toEqual(files.toSorted());
      expect(lines.filter(({ licence = '' }) => licence === '')).toEqual([]);
    }
  });
});
