import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorRegistry } from '../../src/contract/errors.ts';
import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import { formatDocuments } from '../../tools/documents/documents.ts';
import { CONTRIBUTING, documents, readCommandBlocks } from './document-commands.ts';

const read = (file: string): string => readFileSync(file, 'utf8');
test.each([...formatDocuments()])('%s equals the output of `npm run docs`', (file, text) => {
  expect(read(file)).toBe(text);
});

describe('the README', () => {
  test('has at most 130 lines', () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130);
  });

  test('links to every document', () => {
    for (const file of documents.slice(1)) expect(read('README.md')).toContain(`(${file})`);
  });
});

/** Returns the anchors of a document's headings, as GitHub generates them. */
const anchorsOf = (file: string): string[] =>
  (read(file).match(/(?<=^#+ ).*$/gm) ?? []).map((title) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );

const files = [
  ...documents,
  ...[
    'CHANGELOG.md',
    'CODE_OF_CONDUCT.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'bench/README.md',
    'bench/RESULTS-earlier.md',
    'bench/RESULTS.md',
    'fixtures/README.md',
  ],
];

test.each(files)('the links in %s have existing targets', (file) => {
  for (const [, path = '', heading] of read(file).matchAll(
    /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
  )) {
    const target = path === '' ? file : join(dirname(file), path);
    expect(existsSync(target), target).toBe(true);
    if (heading !== undefined) expect(anchorsOf(target), target).toContain(heading);
  }
});

test.each(files)('%s states the correct number of widths, if any', (file) => {
  const counts = Array.from(read(file).matchAll(/(\d+)\s(?:widths|sizes)\b/g), ([, count]) =>
    Number(count),
  );
  expect(counts).toEqual(counts.map(() => ASSET_WIDTHS_PX.length));
});

test.each(files)('the lines of %s fit a terminal', (file) => {
  // Tables, outputs and long words cannot be wrapped.
  const prose = read(file).replaceAll(/^```.*?^```|^ *\|[^\n]*/gms, '');
  const long = (prose.match(/^.{131,}$/gm) ?? []).filter((line) => /\S\s+\S/.test(line.slice(3)));
  expect(long).toEqual([]);
});

test.each(files)('each table row and list item of %s has lines of its own', (file) => {
  const prose = read(file).replaceAll(/^ *```.*?^ *```/gms, '');
  const broken = prose.split('\n').filter((line) => {
    const text = line.replaceAll(/`[^`]*`/g, '`');
    return (
      (/^ *\|/.test(line) && !/\|$/.test(line)) ||
      (/\|$/.test(line) && !/^ *\|/.test(line)) ||
      /\S[.,;] - \S/.test(text)
    );
  });
  expect(broken).toEqual([]);
});

describe('the commands of the documents', () => {
  // In a comment before their block: `<!-- example: needs Docker -->`.
  test.each(files)('in %s state what they need if CI does not run them', (file) => {
    const beforeExamples = read(file).match(/^.*\n(?=```console)/gm) ?? [];
    expect(beforeExamples.filter((line) => !/^<!-- example: \S.* -->\n$/.test(line))).toEqual([]);
  });

  test(`in ${CONTRIBUTING} exist`, () => {
    const known = Object.keys(JSON.parse(read('package.json')).scripts);
    const scripts = readCommandBlocks(CONTRIBUTING).map(({ script }) => script);
    const commands = scripts.join('').match(/^\S.*?(?= +#|$)/gm) ?? [];
    expect(commands.length).toBeGreaterThan(0);
    for (const command of commands) {
      const { script, path } =
        /^(?:npm ci|npm (?:run )?(?<script>[\w:]+)(?: -- .+)?|(?:(?:UPDATE_\w+=1 )?npx vitest run(?: --project \w+)?|node(?: --\S+)*) (?<path>\S+))$/.exec(
          command,
        )?.groups ?? expect.fail(`there is the command "${command}"`);
      if (script !== undefined) expect(known).toContain(script);
      if (path !== undefined) expect(existsSync(path), path).toBe(true);
    }
  });
});

test('command-line.md and the table of command lines have every command', () => {
  const table = read('src/cli/command-line.ts').matchAll(/^ {2}(\w+): \w+Command,$/gm);
  const names = Array.from(table, ([, name = '']) => name);
  expect(names).toContain('serve');
  for (const name of names) {
    expect(read('docs/command-line.md')).toMatch(new RegExp(`^## .*\\b${name}\\b`, 'm'));
    expect(read('test/cli/command-lines.tsv')).toContain(`darkroom ${name}`);
  }
});

test.each(['clients.md', 'troubleshooting.md'])(
  'docs/%s has advice for every error code',
  (file) => {
    const advice = read(`docs/${file}`);
    for (const code of Object.keys(errorRegistry)) expect(advice).toContain(`\`${code}\``);
  },
);
