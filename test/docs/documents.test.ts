import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorRegistry } from '../../src/contract/errors.ts';
import { formatDocuments } from '../../tools/documents/documents.ts';
import { CONTRIBUTING, documents, readCommandBlocks } from './document-commands.ts';

const read = (file: string): string => readFileSync(file, 'utf8');
test.each([...formatDocuments()])('%s is what `npm run docs` writes', (file, text) => {
  expect(read(file)).toBe(text);
});

describe('the README', () => {
  test('is read within some minutes', () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120);
  });

  test('links to every document', () => {
    for (const file of documents.slice(1)) expect(read('README.md')).toContain(`(${file})`);
  });
});

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (file: string): string[] =>
  [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );

const files = [
  ...documents,
  ...['CHANGELOG.md', 'SECURITY.md', 'bench/README.md', 'bench/RESULTS.md', 'fixtures/README.md'],
];

test.each(files)('the links of %s lead to what there is', (file) => {
  for (const [, path = '', heading] of read(file).matchAll(
    /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
  )) {
    const target = path === '' ? file : join(dirname(file), path);
    expect(existsSync(target), target).toBe(true);
    if (heading !== undefined) expect(anchorsOf(target), target).toContain(heading);
  }
});

test.each(files)('lines of %s are short enough for a terminal', (file) => {
  let isCode = false;
  const long = read(file)
    .split('\n')
    .filter((line) => {
      if (line.startsWith('```')) isCode = !isCode;
      // Tables, what commands print, and words without a space have the length that they have.
      return line.length > 130 && !isCode && !line.startsWith('|') && /\S\s+\S/.test(line.slice(3));
    });
  expect(long).toEqual([]);
});

/**
 * Reads the `console` blocks of a document that do not say, in a comment before them, what they need that CI does not
 * have, or should not change: `<!-- example: needs Docker -->`.
 *
 * @returns the numbers of their lines
 */
function readUnmarkedExamples(file: string): number[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, index) =>
    line.startsWith('```console') && !/^<!-- example: \S.* -->$/.test(lines[index - 1] ?? '')
      ? [index + 1]
      : [],
  );
}

describe('the commands of the documents', () => {
  test.each(files)('that CI does not run say in %s what they need', (file) => {
    expect(readUnmarkedExamples(file)).toEqual([]);
  });

  test(`of ${CONTRIBUTING} are there`, () => {
    const known = Object.keys(JSON.parse(read('package.json')).scripts);
    const lines = readCommandBlocks(CONTRIBUTING).flatMap(({ script }) =>
      script.trimEnd().split('\n'),
    );
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const command = line.replace(/ +#.*/, '');
      const { script, path } =
        /^(?:npm ci|npm (?:run )?(?<script>[\w:]+)(?: -- .+)?|(?:(?:UPDATE_\w+=1 )?npx vitest run(?: --project \w+)?|node(?: --\S+)*) (?<path>\S+))$/.exec(
          command,
        )?.groups ?? expect.fail(`there is the command "${command}"`);
      if (script !== undefined) expect(known).toContain(script);
      if (path !== undefined) expect(existsSync(path), path).toBe(true);
    }
  });
});

test.each(['clients.md', 'operate.md'])('the advice of docs/%s has every error', (file) => {
  const advice = read(`docs/${file}`);
  for (const code of Object.keys(errorRegistry)) expect(advice).toContain(`\`${code}\``);
});
