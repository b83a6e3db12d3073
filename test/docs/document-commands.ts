import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

/** Paths of all documents. */
export const documents = [
  'README.md',
  ...readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
];

/** The one document whose commands are those of CI, which runs them: here it is seen that they exist. */
export const CONTRIBUTING = 'docs/contributing.md';

/** Token of the admin listener of the service that documents ask. */
export const ADMIN_TOKEN = 'the-token-of-the-documents';

/** One `sh` block of a document, with what it says comes out of it. */
export interface CommandBlock {
  readonly line: number;
  readonly script: string;
  /** Lines of the plain blocks that follow, up to the next `sh` block. */
  readonly expected: readonly string[];
}

/** A block that was run. */
export interface RunBlock extends CommandBlock {
  /** Standard output and standard error, in their order; `undefined` if it was not come to. */
  readonly output: string | undefined;
}

/** What a document needs to find in the folder that its commands run in: a clone, but for what they write. */
const CLONE = ['bin', 'deploy', 'dist', 'docs', 'fixtures', 'node_modules', 'package.json'];

/** A command that must fail says so: `… # exit status 1`. */
const EXPECTED_STATUS = /^(?<command>.*\S)\s+# exit status (?<status>\d+)$/;

/** The `sh` blocks of a document in their order. */
export function readCommandBlocks(file: string): CommandBlock[] {
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

/**
 * Reads the `console` blocks of a document that do not say, in a comment before them, what they need that CI does not
 * have, or should not change: `<!-- example: needs Docker -->`.
 *
 * @returns the numbers of their lines
 */
export function readUnmarkedExamples(file: string): number[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, index) =>
    line.startsWith('```console') && !/^<!-- example: \S.* -->$/.test(lines[index - 1] ?? '')
      ? [index + 1]
      : [],
  );
}

/**
 * Runs the commands of a document as somebody would who reads it from top to bottom: in one shell, in a
 * folder that looks like a clone and is thrown away afterwards.
 *
 * @param origins of a service and of its admin listener, which stand for those on ports 3000 and 9090
 * @returns the exit status of the shell, which is not 0 where a command has not ended as documented
 */
export async function runDocument(
  blocks: readonly CommandBlock[],
  {
    origin,
    adminOrigin,
  }: { readonly origin?: string | undefined; readonly adminOrigin?: string | undefined } = {},
): Promise<{ readonly status: number | null; readonly blocks: readonly RunBlock[] }> {
  const { path: folder } = await useTemporaryFolder();
  for (const name of CLONE) symlinkSync(resolve(name), join(folder, name));
  const parts = blocks.map(({ script }, index) => `echo '@@ ${index}'\n${withStatuses(script)}`);
  const whole = `exec 2>&1\nset -e -o pipefail\n${parts.join('\n')}`;
  const script = whole
    .replaceAll('http://127.0.0.1:3000', origin ?? '$&')
    .replaceAll('http://127.0.0.1:9090', adminOrigin ?? '$&');
  const child = spawn('bash', ['-c', script], {
    cwd: folder,
    env: {
      ADMIN_TOKEN,
      PATH: process.env.PATH ?? '',
      HOME: folder,
      NPM_CONFIG_OFFLINE: 'true',
      NPM_CONFIG_UPDATE_NOTIFIER: 'false',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<number | null>((end) => child.once('close', end));
  const outputs = (await text(child.stdout)).split(/^@@ \d+\n/m).slice(1);
  return {
    status: await exited,
    blocks: blocks.map((block, index) => ({ ...block, output: outputs[index] })),
  };
}

/** Lets commands fail that must, and only with the status that is documented. */
function withStatuses(script: string): string {
  return script
    .split('\n')
    .map((line) => {
      const { command, status } = EXPECTED_STATUS.exec(line)?.groups ?? {};
      return command === undefined
        ? line
        : `if ( ${command} ); then false; else [ $? -eq ${status} ]; fi`;
    })
    .join('\n');
}
