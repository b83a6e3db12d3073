import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { startService } from '../support/processes/service-process.ts';
import {
  ADMIN_TOKEN,
  CONTRIBUTING,
  documents,
  readCommandBlocks,
  runDocument,
} from './document-commands.ts';

const runs = documents
  .filter((file) => file !== CONTRIBUTING)
  .map((file) => {
    // That `npm start` prints its links is for CI to see.
    const blocks = readCommandBlocks(file).filter(({ script }) => !script.endsWith('npm start\n'));
    const asksService = blocks.some(({ script }) => /127\.0\.0\.1:(?:3000|9090)/.test(script));
    return { file, blocks, asksService };
  })
  .filter(({ blocks }) => blocks.length > 0);
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the commands of the documents', () => {
  for (const { file, blocks: documented, asksService } of runs) {
    // Debian's slim images have no curl; the gate installs it.
    test.skipIf(asksService && !hasCurl)(`of ${file} do what it says`, async () => {
      const service = asksService
        ? await startService({ ADMIN_PORT: '0', ADMIN_TOKEN })
        : undefined;
      const adminOrigin =
        service && /admin listener is on (http:[\d.:/]+)/.exec(service.output())?.[1];
      try {
        const origins = { origin: service?.origin, adminOrigin };
        const { status, blocks } = await runDocument(documented, origins);
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
