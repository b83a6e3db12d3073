import { readdirSync, readFileSync } from 'node:fs';

export const documents = [
  'README.md',
  ...readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
];

/** The one document whose commands are those of CI, which runs them: here it is seen that they exist. */
export const CONTRIBUTING = 'docs/contributing.md';

/** The `sh` blocks of a document, each with the lines of the plain blocks that follow, which it prints. */
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
