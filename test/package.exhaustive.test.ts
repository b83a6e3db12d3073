import { execFileSync, spawn } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeTemporaryFolder } from './support/temporary-folder.ts';

/** What is built from, so that the package can be made beside a `dist/` that other tests use. */
const SOURCES = [
  ...['bin', 'docs', 'fixtures', 'LICENSE', 'package.json', 'README.md', 'src', 'tools'],
  'tsconfig.json',
];

/** Without those of the run, such as npm's own. */
const environment = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? tmpdir() };

function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, env: environment, encoding: 'utf8', stdio: 'pipe' });
}

const { path: folder, put, remove } = await makeTemporaryFolder();
// Twice some ten thousand files, on a machine that is busy.
afterAll(remove, 300_000);
const source = join(folder, 'source');
const empty = join(folder, 'empty');
for (const name of SOURCES) cpSync(name, join(source, name), { recursive: true });
symlinkSync(resolve('node_modules'), join(source, 'node_modules'));
// Without one, npm would look for a project above.
await put('empty/package.json', '{}');
const [result] = JSON.parse(run(source, 'npm', 'pack', '--json', '--pack-destination', folder));
const packed: string[] = result.files.map(({ path }: { readonly path: string }) => path);
run(empty, 'npm', 'install', '--no-audit', '--no-fund', join(folder, result.filename));

describe('the package', () => {
  test('has the program and the samples, and no other fixture', () => {
    const roots = new Set(packed.map((path) => path.split('/').slice(0, 2).join('/')));
    const fixtures = [...roots].filter((root) => root.startsWith('fixtures/'));
    expect(fixtures.toSorted()).toEqual(['fixtures/originals', 'fixtures/originals-index.tsv']);
    expect(packed).toEqual(
      expect.arrayContaining(['bin/darkroom.mjs', 'dist/main.js', 'dist/workers/child/main.js']),
    );
    expect([...roots].filter((root) => /^(src|test|bench|tools)\b/.test(root))).toEqual([]);
  });

  // Other versions of Node start the service in CI.
  test('installed in an empty folder, has its command where npx looks for it, which serves its samples', async () => {
    const child = spawn('node_modules/.bin/darkroom', ['serve'], {
      cwd: empty,
      env: { ...environment, PORT: '0', WORKERS: '1' },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    const links = () => [...output.matchAll(/^ {2}(http:\S+)$/gm)].map(([, link = '']) => link);
    await expect.poll(() => links().length || output, { timeout: 100_000 }).toBe(3);
    for (const link of links()) {
      const response = await fetch(link);
      expect(response.status, link).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^image\//);
    }
  });
});
