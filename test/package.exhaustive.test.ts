import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, statSync, symlinkSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'rolldown';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeTemporaryDirectory } from './support/temporary-directory.ts';

/** Sources of a separate build, since other tests use `dist`. */
const SOURCES = [
  ...['bin', 'docs', 'fixtures', 'LICENSE', 'package.json', 'README.md', 'src', 'tools'],
  'tsconfig.json',
];

/** Variables of the run, such as those of npm, are omitted. */
const environment = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? tmpdir() };

function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, env: environment, encoding: 'utf8', stdio: 'pipe' });
}

const { path: directory, put, remove } = await makeTemporaryDirectory();
// A busy machine takes minutes to remove thousands of files.
afterAll(remove, 300_000);
const source = join(directory, 'source');
const empty = join(directory, 'empty');
for (const name of SOURCES) cpSync(name, join(source, name), { recursive: true });
symlinkSync(resolve('node_modules'), join(source, 'node_modules'));
// Without a package.json, npm would search parent directories.
await put('empty/package.json', '{}');
const [result] = JSON.parse(run(source, 'npm', 'pack', '--json', '--pack-destination', directory));
const packed: string[] = result.files.map(({ path }: { readonly path: string }) => path);
run(empty, 'npm', 'install', '--no-audit', '--no-fund', join(directory, result.filename));

describe('the package', () => {
  test('contains the program and the samples, and no other fixture', () => {
    const roots = new Set(packed.map((path) => path.split('/').slice(0, 2).join('/')));
    const fixtures = [...roots].filter((root) => root.startsWith('fixtures/'));
    expect(fixtures.toSorted()).toEqual(['fixtures/originals', 'fixtures/originals-index.tsv']);
    expect(packed).toEqual(
      expect.arrayContaining(['bin/darkroom.mjs', 'dist/main.js', 'dist/workers/child/main.js']),
    );
    expect([...roots].filter((root) => /^(src|test|bench|tools)\b/.test(root))).toEqual([]);
  });

  test('has valid exports and types', () => {
    const tarball = join(directory, result.filename);
    const bin = resolve('node_modules/.bin');
    expect(run('.', join(bin, 'publint'), '--strict', tarball)).toContain('All good!');
    expect(run('.', join(bin, 'attw'), tarball, '--profile', 'esm-only')).not.toContain('❌');
  });

  test('installs less than 90 MB, without bundled packages', async () => {
    const files = await readdir(join(empty, 'node_modules'), {
      recursive: true,
      withFileTypes: true,
    });
    const sizes = files
      .filter((file) => file.isFile())
      .map((file) => statSync(join(file.parentPath, file.name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(90e6);
    const names = new Set(await readdir(join(empty, 'node_modules')));
    expect([...names].filter((name) => /^@(aws|aws-sdk|smithy|opentelemetry)$/.test(name))).toEqual(
      [],
    );
  });

  test('connects to S3 without an installed AWS SDK', () => {
    const { stdout } = spawnSync('node_modules/.bin/darkroom', ['check'], {
      cwd: empty,
      env: {
        ...environment,
        STORAGE: 's3',
        S3_BUCKET: 'originals',
        S3_REGION: 'garage',
        // No server listens on port 1.
        S3_ENDPOINT: 'http://127.0.0.1:1',
        AWS_ACCESS_KEY_ID: 'an-example',
        AWS_SECRET_ACCESS_KEY: 'an-example',
      },
      encoding: 'utf8',
    });
    expect(stdout).toMatch(/^FAULT +missing original.*ECONNREFUSED/m);
  });

  test('contains the licences of bundled packages', async () => {
    const licences = await readFile(
      join(empty, 'node_modules/@darkroom-media/darkroom/dist/LICENSES'),
      'utf8',
    );
    for (const name of ['@aws-sdk/client-s3', '@opentelemetry/core', 'mediabunny', 'preact']) {
      expect(licences).toContain(`${name} `);
    }
    expect(licences).toContain('Mozilla Public License Version 2.0');
  });

  // Other versions of Node start the service in CI.
  test('serves its samples by npx after an installation in an empty directory', async () => {
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

describe('a program that imports the libraries of the package', () => {
  const program = `
    import { MediaUrls, nearestSize, type Size } from '@darkroom-media/darkroom/urls';
    import { signExternalUrl, verifyExternalUrl } from '@darkroom-media/darkroom/signing';
    import { AdminClient, type Metadata } from '@darkroom-media/darkroom/admin';

    const media = new MediaUrls({ cdnUrl: 'https://cdn.example.com' });
    const size: Size = nearestSize(40, 2);
    console.log(media.avatar('1', 'ab12', { size }));
    // @ts-expect-error A size that is not listed
    if (process.argv.length > 9) media.avatar('1', 'ab12', { size: 63 });
    const signingKeys = 'an-example-key-of-thirty-two-bytes-or-more';
    const url = await signExternalUrl({ url: 'https://media.example.org/cat.png', signingKeys });
    console.log((await verifyExternalUrl({ url, signingKeys })).verdict);
    const admin = new AdminClient({ adminUrl: 'http://127.0.0.1:9090', token: 'a token' });
    const readMetadata: (key: string) => Promise<Metadata> = (key) => admin.metadata(key);
    console.log(typeof readMetadata);
  `;
  const file = join(empty, 'program.ts');

  test.each([
    ['node16', 'node16'],
    ['preserve', 'bundler'],
  ])('compiles with module %s and moduleResolution %s', async (module, moduleResolution) => {
    await put('empty/package.json', '{ "type": "module" }');
    await put('empty/program.ts', `declare const process: { argv: string[] };${program}`);
    const options = ['--strict', '--target', 'es2022', '--lib', 'es2023,dom', '--types', ''];
    run(
      empty,
      resolve('node_modules/.bin/tsc'),
      ...options,
      ...['--module', module, '--moduleResolution', moduleResolution, file],
    );
    const printed = ['https://cdn.example.com/avatars/1/ab12.webp?size=80', 'valid', 'function'];
    expect(run(empty, process.execPath, 'program.js').trim().split('\n')).toEqual(printed);
  });

  test.each([
    ['urls', 'MediaUrls', 6_000],
    ['urls', 'nearestSize', 1_000],
    ['signing', 'signExternalUrl', 6_000],
    ['admin', 'AdminClient', 4_000],
  ])('is bundled for browsers with %s: %s in less than %d bytes', async (name, imported, bytes) => {
    await put(
      'empty/page.js',
      `import { ${imported} } from '@darkroom-media/darkroom/${name}'; console.log(${imported});`,
    );
    const { output } = await build({
      input: join(empty, 'page.js'),
      platform: 'browser',
      write: false,
      output: { minify: true },
    });
    expect(output).toHaveLength(1);
    expect(output[0].code).not.toMatch(/node:|require\(/);
    expect(output[0].code.length).toBeLessThan(bytes);
  });
});
