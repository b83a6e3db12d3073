import { spawn } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

/** How the commands of a document are tested. */
type Document =
  /** They are run; with the sample originals on port 3000, where they ask for them. */
  | { readonly kind: 'run'; readonly asksService: boolean }
  /** They are those of CI, which runs them: here it is seen that they exist. */
  | { readonly kind: 'scripts' }
  /** There are none, or none in `sh` blocks: those in `console` blocks need root, Docker or an S3 server. */
  | { readonly kind: 'no commands' };

/** Every document. To have another one tested, write its line. */
export const documents: Readonly<Record<string, Document>> = {
  'clients.md': { kind: 'run', asksService: true },
  'command-line.md': { kind: 'run', asksService: false },
  'compatibility.md': { kind: 'no commands' },
  'configuration.md': { kind: 'run', asksService: false },
  'contract.md': { kind: 'no commands' },
  'contributing.md': { kind: 'scripts' },
  'deploy.md': { kind: 'run', asksService: true },
  'design.md': { kind: 'no commands' },
  'glossary.md': { kind: 'no commands' },
  'migration.md': { kind: 'no commands' },
  'performance.md': { kind: 'scripts' },
  'purge.md': { kind: 'no commands' },
  'rates.md': { kind: 'run', asksService: false },
  'safety.md': { kind: 'run', asksService: true },
  'signing.md': { kind: 'run', asksService: false },
  'watch.md': { kind: 'run', asksService: false },
};

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
 * Runs the commands of a document as somebody would who reads it from top to bottom: in one shell, in a
 * folder that looks like a clone and is thrown away afterwards.
 *
 * @param options `origin`: of a service that stands for the one on port 3000
 * @returns the exit status of the shell, which is not 0 where a command has not ended as documented
 */
export async function runDocument(
  blocks: readonly CommandBlock[],
  { origin }: { readonly origin?: string } = {},
): Promise<{ readonly status: number | null; readonly blocks: readonly RunBlock[] }> {
  const { path: folder } = await useTemporaryFolder();
  for (const name of CLONE) symlinkSync(resolve(name), join(folder, name));
  const script = blocks.map(
    ({ script: text }, index) => `echo '@@ ${index}'\n${withStatuses(text)}`,
  );
  const whole = `exec 2>&1\nset -e -o pipefail\n${script.join('\n')}`;
  const child = spawn('bash', ['-c', whole.replaceAll('http://127.0.0.1:3000', origin ?? '$&')], {
    cwd: folder,
    env: {
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
