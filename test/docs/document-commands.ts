import { readdirSync, readFileSync } from 'node:fs';

export const documents = [
  'README.md',
  ...readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
];

/** The document with the commands of CI: tests only check that they exist. */
export const CONTRIBUTING = 'docs/contributing.md';

/** Reads the `sh` blocks of a document, each with its expected output: the plain blocks after it. */
export function readCommandBlocks(file: string) {
  const blocks: { line: number; script: string; expected: string[] }[] = [];
  const markdown = readFileSync(file, 'utf8');
  for (const match of markdown.matchAll(/^```(\w*)[^\n]*\n(.*?)^```$/gms)) {
    const [, language = '', content = ''] = match;
    const line = markdown.slice(0, match.index).split('\n').length + 1;
    if (language === 'sh') blocks.push({ line, script: content, expected: [] });
    if (language === '') blocks.at(-1)?.expected.push(...content.trimEnd().split('\n'));
  }
  return blocks;
}
