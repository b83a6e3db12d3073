import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorRegistry } from '../../src/contract/errors.ts';
import { startService } from '../support/service-process.ts';
import { readCommandBlocks, runDocument } from './document-commands.ts';

/** How the commands of a document are tested. */
type Document =
  /** They are run; with the sample originals on port 3000, where they ask for them. */
  | { readonly kind: 'run'; readonly asksService: boolean }
  /** They are those of the gate, which runs them: here it is seen that there are such. */
  | { readonly kind: 'scripts' }
  /** There are none. */
  | { readonly kind: 'no commands' };

/** Every document. To have another one tested, write its line. */
const documents: Readonly<Record<string, Document>> = {
  'clients.md': { kind: 'run', asksService: true },
  'command-line.md': { kind: 'run', asksService: false },
  'contract.md': { kind: 'no commands' },
  'configuration.md': { kind: 'run', asksService: false },
  'contributing.md': { kind: 'scripts' },
  'operating.md': { kind: 'run', asksService: true },
  'performance.md': { kind: 'scripts' },
  'safety.md': { kind: 'run', asksService: true },
};

const rows = Object.entries(documents);
const scripts = rows.flatMap(([file, { kind }]) => (kind === 'scripts' ? [file] : []));
const runs = rows.flatMap(([file, row]) =>
  row.kind === 'run' ? [{ file, asksService: row.asksService }] : [],
);
const withoutCommands = rows.flatMap(([file, { kind }]) => (kind === 'no commands' ? [file] : []));
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the commands of the documents', () => {
  test('none is left out', () => {
    const files = readdirSync('docs').filter((file) => file.endsWith('.md'));
    expect(files.sort()).toEqual(Object.keys(documents).sort());
  });

  for (const { file, asksService } of runs) {
    // Debian's slim images have no curl; the gate installs it.
    test.skipIf(asksService && !hasCurl)(
      `of docs/${file} do what it says`,
      async () => {
        const service = asksService ? await startService({}) : undefined;
        try {
          const { status, blocks } = await runDocument(
            readCommandBlocks(`docs/${file}`),
            service && { origin: service.origin },
          );
          expect(blocks.length).toBeGreaterThan(0);
          for (const { line, output, expected } of blocks) {
            const lines = output?.split('\n') ?? [];
            const missing = expected.filter((text) => !lines.includes(text));
            expect(missing, `docs/${file}:${line} prints ${output}`).toEqual([]);
          }
          expect(status, `the last block that was come to: ${JSON.stringify(blocks)}`).toBe(0);
        } finally {
          await service?.stop();
        }
      },
      60_000,
    );
  }

  test.each(scripts)('of docs/%s are there', (file) => {
    const known = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).scripts);
    const lines = readCommandBlocks(`docs/${file}`).flatMap(({ script }) =>
      script.trimEnd().split('\n'),
    );
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const command = line.replace(/ +#.*/, '');
      const { script, path } =
        /^(?:npm ci|npm (?:run )?(?<script>[\w:]+)(?: -- .+)?|(?:(?:UPDATE_\w+=1 )?npx vitest run|node) (?<path>\S+))$/.exec(
          command,
        )?.groups ?? expect.fail(`docs/${file} has the command "${command}"`);
      if (script !== undefined) expect(known).toContain(script);
      if (path !== undefined) expect(existsSync(path), path).toBe(true);
    }
  });

  test.each(withoutCommands)('of docs/%s do not exist', (file) => {
    expect(readCommandBlocks(`docs/${file}`)).toEqual([]);
  });

  test.each(['clients.md', 'operating.md'])('the advice of docs/%s has every error', (file) => {
    const advice = readFileSync(`docs/${file}`, 'utf8');
    for (const code of Object.keys(errorRegistry)) expect(advice).toContain(`\`${code}\``);
  });

  test('would be found out', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'document.md');
    const run = async (...commands: string[]) => {
      writeFileSync(file, commands.map((text) => `\`\`\`sh\n${text}\n\`\`\`\n`).join('\n'));
      return runDocument(readCommandBlocks(file));
    };
    expect((await run('echo a', 'false # exit status 1')).status).toBe(0);
    expect((await run('true # exit status 1')).status).toBe(1);
    expect((await run('(exit 3) # exit status 1')).status).toBe(1);
    const { status, blocks } = await run('echo a', 'npx darkroom polish', 'echo b');
    expect(status).toBe(64);
    expect(blocks.map(({ output }) => output)).toEqual([
      'a\n',
      'darkroom: there is no command "polish"; see darkroom --help\n',
      undefined,
    ]);
  });
});
