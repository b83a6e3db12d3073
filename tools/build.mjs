/** Builds `dist`: compiles the sources, bundles the files that load without `node_modules`, and adds what they read. */
import { execFileSync } from 'node:child_process';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { build } from 'rolldown';

const LICENCE_BANNER = '/* Licences of the bundled packages: see LICENSES */';

const COMMIT_DIGITS = 12;

function compile(project) {
  execFileSync('node_modules/.bin/tsc', ['-p', project, '--noCheck'], { stdio: 'inherit' });
}

/** Bundles a file of the service with its packages, and replaces the output of `tsc`. Returns the bundled files. */
async function bundle(path, { external, ...options }) {
  const { output } = await build({
    input: `src/${path}.ts`,
    external,
    platform: 'node',
    // The CommonJS files of the AWS SDK keep its 100 other commands, and load at twice the cost.
    resolve: { mainFields: ['module', 'main'] },
    output: { file: `dist/${path}.js`, codeSplitting: false, ...options },
    logLevel: 'warn',
  });
  return output;
}

async function bundlePage() {
  const { output } = await build({
    input: 'src/explorer/page/explorer.tsx',
    platform: 'browser',
    tsconfig: 'src/explorer/page/tsconfig.json',
    output: { dir: 'dist/explorer/page', minify: true, postBanner: LICENCE_BANNER },
    logLevel: 'warn',
  });
  return output;
}

/** Bundles the package's libraries without modules of the service, whose tables become plain data. */
async function bundleClient() {
  const directory = 'dist/client';
  const tables = await import('../dist/client/tables.js');
  const constants = Object.entries(tables)
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
    .join('\n');
  for (const file of await readdir(directory)) {
    if (/\.js(\.map)?$/.test(file)) await rm(`${directory}/${file}`);
  }
  await build({
    input: ['urls', 'signing', 'admin'].map((name) => `src/client/${name}.ts`),
    platform: 'neutral',
    plugins: [
      {
        name: 'tables',
        load: (id) => (id.endsWith('/client/tables.ts') ? constants : undefined),
      },
    ],
    output: { dir: directory, sourcemap: true, chunkFileNames: '[name].js' },
    logLevel: 'warn',
  });
}

/** Writes the licences of the packages in the bundles; identical texts appear once. */
async function writeLicences(files) {
  const directories = files
    .flatMap(({ moduleIds = [] }) => moduleIds)
    .map((id) => /.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0])
    .filter((directory) => directory !== undefined);
  const packages = new Map();
  for (const directory of [...new Set(directories)].toSorted()) {
    const { name, version, license, repository } = JSON.parse(
      await readFile(`${directory}/package.json`, 'utf8'),
    );
    const file = (await readdir(directory)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : await readFile(`${directory}/${file}`, 'utf8');
    const source = repository?.url ?? repository ?? '';
    const line = `${name} ${version}, ${license}: ${source}`;
    packages.set(text.trim(), [...(packages.get(text.trim()) ?? []), line]);
  }
  const sections = [...packages].map(([text, lines]) => `${lines.join('\n')}\n\n${text}\n`);
  await writeFile('dist/LICENSES', sections.join(`\n${'-'.repeat(80)}\n\n`));
}

/** Returns the commit: `GIT_COMMIT` for builds without a repository, such as an image's; otherwise from git. */
function readCommit() {
  if (process.env.GIT_COMMIT) return process.env.GIT_COMMIT;
  try {
    return String(
      execFileSync('git', ['rev-parse', 'HEAD'], { stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return ''; // no repository, or no git
  }
}

async function writeRelease() {
  const commit = readCommit().trim().slice(0, COMMIT_DIGITS);
  const release = commit === '' ? {} : { commit };
  await writeFile('dist/release.json', `${JSON.stringify(release)}\n`);
}

process.chdir(new URL('..', import.meta.url).pathname);
compile('src');
compile('src/client');
const minified = { minify: true, keepNames: true, postBanner: LICENCE_BANNER };
const bundles = await Promise.all([
  bundle('workers/child/main', { external: ['sharp'], sourcemap: true }),
  bundle('telemetry/opentelemetry', minified),
  bundle('telemetry/prometheus', minified),
  bundle('storage/aws-sdk', minified),
  bundlePage(),
]);
await bundleClient();
await writeLicences(bundles.flat());
for (const file of await readdir('src/default-avatars')) {
  if (file.endsWith('.png'))
    await cp(`src/default-avatars/${file}`, `dist/default-avatars/${file}`);
}
await cp('src/explorer/page/index.html', 'dist/explorer/page/index.html');
await cp('src/explorer/page/styles', 'dist/explorer/page/styles', { recursive: true });
await cp('docs/openapi.json', 'dist/openapi.json');
await writeRelease();
