import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { startService } from '../support/processes/service-process.ts';
import { ADMIN_TOKEN, documents, readCommandBlocks, runDocument } from './document-commands.ts';

const runs = [
  { file: 'README.md', asksService: true },
  ...Object.entries(documents).flatMap(([file, row]) =>
    row.kind === 'run' ? [{ file: `docs/${file}`, asksService: row.asksService }] : [],
  ),
];
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the commands of the documents', () => {
  for (const { file, asksService } of runs) {
    // Debian's slim images have no curl; the gate installs it.
    test.skipIf(asksService && !hasCurl)(`of ${file} do what it says`, async () => {
      const service = asksService
        ? await startService({ ADMIN_PORT: '0', ADMIN_TOKEN })
        : undefined;
      const adminOrigin =
        service && /admin listener is on (http:[\d.:/]+)/.exec(service.output())?.[1];
      try {
        const { status, blocks } = await runDocument(
          // That `npm start` prints its links is for CI to see.
          readCommandBlocks(file).filter(({ script }) => !script.endsWith('npm start\n')),
          { origin: service?.origin, adminOrigin },
        );
        expect(blocks.length).toBeGreaterThan(0);
        for (const { line, output, expected } of blocks) {
          const lines = output?.split('\n') ?? [];
          const missing = expected.filter((text) => !lines.includes(text));
          expect(missing, `${file}:${line} prints ${output}`).toEqual([]);
        }
        expect(status, `the last block that was come to: ${JSON.stringify(blocks)}`).toBe(0);
      } finally {
        await service?.stop();
      }
    });
  }
});
