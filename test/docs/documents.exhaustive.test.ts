import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { documents, readCommandBlocks, runDocument } from './document-commands.ts';

const runs = Object.entries(documents).flatMap(([file, row]) =>
  row.kind === 'run' ? [{ file, asksService: row.asksService }] : [],
);
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the commands of the documents', () => {
  for (const { file, asksService } of runs) {
    // Debian's slim images have no curl; the gate installs it.
    test.skipIf(asksService && !hasCurl)(`of docs/${file} do what it says`, async () => {
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
    });
  }

  test('would be found out', async () => {
    const file = join((await useTemporaryFolder()).path, 'document.md');
    const run = async (...commands: string[]) => {
      writeFileSync(file, commands.map((text) => `\`\`\`sh\n${text}\n\`\`\`\n`).join('\n'));
      return runDocument(readCommandBlocks(file));
    };
    expect((await run('echo a', 'false # exit status 1')).status).toBe(0);
    expect((await run('true # exit status 1')).status).toBe(1);
    expect((await run('(exit 3) # exit status 1')).status).toBe(1);
    const { status, blocks } = await run('echo a', 'node bin/darkroom.mjs polish', 'echo b');
    expect(status).toBe(64);
    expect(blocks.map(({ output }) => output)).toEqual([
      'a\n',
      'darkroom: there is no command "polish"; see darkroom --help\n',
      undefined,
    ]);
  });
});
