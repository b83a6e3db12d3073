import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { CONTRIBUTING, documents, readCommandBlocks } from './document-commands.ts';

const ADMIN_TOKEN = 'the-token-of-the-documents';

/** Files that the commands of the documents read. */
const CLONE = ['bin', 'deploy', 'dist', 'docs', 'fixtures', 'node_modules', 'package.json'];

/** Expects the documented exit status of failing commands: `… # exit status 1`. */
const withStatuses = (script: string): string =>
  script.replaceAll(
    /^(.*\S)\s+# exit status (\d+)$/gm,
    'if ( $1 ); then false; else [ $? -eq $2 ]; fi',
  );

/** Runs the commands of a document in order: in one shell, in a temporary directory that looks like a clone. */
async function run(script: string) {
  const { path: directory } = await useTemporaryDirectory();
  for (const name of CLONE) symlinkSync(resolve(name), join(directory, name));
  const child = spawn('bash', ['-c', `exec 2>&1\nset -e -o pipefail\n${script}`], {
    cwd: directory,
    env: {
      ADMIN_TOKEN,
      PATH: process.env.PATH ?? '',
      HOME: directory,
      NPM_CONFIG_OFFLINE: 'true',
      NPM_CONFIG_UPDATE_NOTIFIER: 'false',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  return { output: await text(child.stdout), status: (await closed)[0] };
}

const runs = documents
  .filter((file) => file !== CONTRIBUTING)
  .map((file) => {
    // CI checks the links that `npm start` prints.
    const blocks = readCommandBlocks(file).filter(({ script }) => !script.endsWith('npm start\n'));
    const needsService = blocks.some(({ script }) => /127\.0\.0\.1:(?:3000|9090)/.test(script));
    return { file, blocks, needsService };
  })
  .filter(({ blocks }) => blocks.length > 0);
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the commands of the documents', () => {
  for (const { file, blocks, needsService } of runs) {
    // Debian's slim images have no curl; the gate installs it.
    test.skipIf(needsService && !hasCurl)(`in ${file} print the documented output`, async () => {
      const parts = blocks.map(({ script }, at) => `echo '@@ ${at}'\n${withStatuses(script)}`);
      let whole = parts.join('\n');
      if (needsService) {
        // Stands in for the service on ports 3000 and 9090.
        const { origin, output } = await useService({ ADMIN_PORT: '0', ADMIN_TOKEN });
        const [, adminOrigin = ''] = /admin listener is on (http:[\d.:/]+)/.exec(output()) ?? [];
        whole = whole.replaceAll('http://127.0.0.1:3000', origin);
        whole = whole.replaceAll('http://127.0.0.1:9090', adminOrigin);
      }
      const { output, status } = await run(whole);
      // Outputs of the commands that ran.
      const outputs = output.split(/^@@ \d+\n/m).slice(1);
      for (const [at, { line, expected }] of blocks.entries()) {
        const lines = outputs[at]?.split('\n') ?? [];
        const missing = expected.filter((each) => !lines.includes(each));
        expect(missing, `${file}:${line} prints ${outputs[at]}`).toEqual([]);
      }
      expect(status, `${file} ends with: ${outputs.at(-1)}`).toBe(0);
    });
  }
});
