import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCES = resolve(import.meta.dirname, '../src');
const TESTS = import.meta.dirname;

/** Directories from the top down, with those that each may import from in addition to itself. */
const floors: Readonly<Record<string, readonly string[]>> = {
  cli: ['', 'config', 'storage', 'workers', 'pipeline', 'formats', 'contract'],
  '': [
    ...['config', 'default-avatars', 'explorer', 'http', 'storage', 'telemetry', 'workers'],
    ...['pipeline', 'contract'],
  ],
  http: ['config', 'default-avatars', 'explorer', 'telemetry', 'pipeline', 'contract'],
  storage: ['config', 'pipeline', 'contract'],
  workers: ['pipeline', 'formats', 'contract'],
  telemetry: ['config', 'pipeline', 'contract'],
  'default-avatars': ['contract'],
  explorer: ['pipeline', 'formats', 'contract'],
  pipeline: ['config', 'formats', 'contract'],
  config: ['contract'],
  formats: ['contract'],
  client: ['contract'],
  contract: [],
};

/** Packages and Node modules that a directory may use; all others are forbidden. */
const allowedPackages: Readonly<Record<string, readonly RegExp[]>> = {
  cli: [/^node:/, /^cli-progress$/],
  '': [/^node:/, /^(fastify|pino)$/],
  config: [/^node:(fs|net|os|path|querystring|tls|url)$/],
  http: [/^node:/, /^(fastify|@fastify\/proxy-addr|ipaddr\.js|lru-cache)$/],
  storage: [/^node:/, /^(ipaddr\.js|lru-cache|undici)$/, /^@(aws-sdk|smithy)\//],
  telemetry: [/^node:/, /^pino(-pretty)?$/, /^prom-client$/, /^@opentelemetry\//],
  workers: [/^node:/, /^sharp$/, /^libheif-js\//, /^(mediabunny|thumbhash|zod)$/],
  'default-avatars': [/^node:(crypto|fs\/promises)$/],
  explorer: [/^lru-cache$/, /^@?preact(\/(compat|hooks|signals))?$/], // the latter in its page
  pipeline: [/^node:(crypto|events|stream)$/, /^(file-type|lru-cache)$/],
  client: [], // runs in browsers
  formats: [/^node:zlib$/], // for a profile inside a PNG: pure, no I/O
  contract: [/^node:crypto$/, /^zod$/], // for signatures and digests: pure, no I/O
};

/**
 * Tests that import modules other than `client`, `contract`, `config`, `app`, `main`, the ports and `formats`. The list
 * must not grow: add a test only if you remove another.
 */
const MAX_DEEP_TESTS = 32;
const deepTests = [
  'cli/progress.test.ts',
  'cli/strip.test.ts',
  'deploy/monitoring.test.ts',
  'docs/vectors.test.ts',
  'explorer/catalogue.test.ts',
  'explorer/page.test.ts',
  'workers/gif/gif-rewrite.test.ts',
  'http/exchange.test.ts',
  'http/explorer/rebinding.test.ts',
  'http/media/content-disposition.test.ts',
  'http/media/request-headers.test.ts',
  'http/relay/slow-uploads.test.ts',
  'pipeline/clean-chunks.test.ts',
  'pipeline/originals/content-sniff.test.ts',
  'pipeline/originals/memory-budget.test.ts',
  'pipeline/rates.test.ts',
  'pipeline/render/render-plan.test.ts',
  'pipeline/results/removals.test.ts',
  'pipeline/single-flight.test.ts',
  'storage/inline-originals.test.ts',
  'storage/remote/address-guard.test.ts',
  'storage/results/result-file.test.ts',
  'transforms/hostile-originals.test.ts',
  'workers/confinement/seccomp-filter.test.ts',
  'workers/frame-scaling.test.ts',
  'workers/gif/decode-gif.test.ts',
  'workers/gif/encode-gif.test.ts',
  'workers/large-stills.test.ts',
  'workers/malicious-worker.test.ts',
  'workers/requests.test.ts',
  'workers/video/posters.test.ts',
  'workers/worker-failure.test.ts',
];

/** Helpers that do so to open adapters for tests; this list must not grow, either. */
const deepHelpers = [
  'hostile/bombs/webp-bombs.ts',
  'hostile/mutations/part-codecs.ts',
  'hostile/verdict.ts',
  'support/result-directory/result-directory.ts',
  'support/directory-storage.ts',
  'support/memory-origin.ts',
  'support/processes/worker-pool.ts',
  'support/s3/s3-bucket.ts',
  'support/sites/external-app.ts',
  'support/sites/test-sites.ts',
  'support/test-app.ts',
];

/** TypeScript sources of a directory, by path. */
function readFiles(root: string): [file: string, text: string][] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => [file, readFileSync(join(root, file), 'utf8')]);
}

const directoryOf = (file: string): string => /^[^/]+(?=\/)/.exec(file)?.[0] ?? '';

/** All imports: local ones by their path below `src`, packages by name. */
function readImports(root: string) {
  return readFiles(root).flatMap(([file, text]) => {
    const specifiers = text.matchAll(
      /^(?:import|export)\b[^;]*?from '([^']+)'|\bimport\('([^']+)'\)/gms,
    );
    return [...specifiers].map(([, from = '', specifier = from]) => {
      // A deep import counts for its package.
      const name = specifier.replace(/^[./]*\/node_modules\/([^/]+)\/.*$/, '$1');
      const isLocal = name.startsWith('.');
      const target = isLocal ? relative(SOURCES, resolve(root, dirname(file), name)) : name;
      return { file, directory: directoryOf(file), isLocal, target };
    });
  });
}

const imports = readImports(SOURCES);

describe('the layers', () => {
  test('finds imports', () => {
    expect(imports.filter(({ isLocal }) => isLocal).length).toBeGreaterThan(80);
    expect(new Set(imports.map(({ directory }) => directory))).toEqual(
      new Set(Object.keys(floors)),
    );
  });

  test.each(Object.keys(floors))('"%s" imports only from lower layers', (directory) => {
    const allowed = [directory, ...(floors[directory] ?? [])];
    const upward = imports
      .filter((entry) => entry.directory === directory && entry.isLocal)
      .filter(({ target }) => !allowed.includes(directoryOf(target)));
    expect(upward).toEqual([]);
  });

  test.each(Object.keys(floors))('"%s" uses only its allowed packages', (directory) => {
    const foreign = imports.filter(
      (entry) =>
        entry.directory === directory &&
        !entry.isLocal &&
        !allowedPackages[directory]?.some((pattern) => pattern.test(entry.target)),
    );
    expect(foreign).toEqual([]);
  });

  test('only workers import sharp, and only entry points use process.*', () => {
    const users = readFiles(SOURCES)
      .map(([file, text]) => [file, text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '')] as const)
      .filter(([, code]) => /(?<!-)\bprocess\.\w/.test(code));
    expect(users.map(([file]) => file).sort()).toEqual([
      'cli/main.ts',
      'main.ts',
      'workers/child/main.ts',
      'workers/fork-server/main.ts',
    ]);
    // The fork server needs the path of Node, and the means to exit.
    const importers = imports.filter(({ target }) => /^(node:)?process$/.test(target));
    expect(importers.map(({ file }) => file).sort()).toEqual([
      'workers/confinement/sandbox.ts',
      'workers/process-tree.ts',
    ]);
    const directories = imports
      .filter(({ target }) => target === 'sharp')
      .map(({ file }) => file.split('/').slice(0, 2).join('/'));
    expect(new Set(directories)).toEqual(new Set(['workers/child']));
  });

  // An installation has no other packages.
  test('files outside bundles import only dependencies of the package', () => {
    const bundled =
      /^(workers\/child|explorer\/page)\/|^(storage\/aws-sdk|telemetry\/(opentelemetry|prometheus))\.ts$/;
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    const missing = imports
      .filter(
        ({ file, isLocal, target }) => !isLocal && !bundled.test(file) && !/^node:/.test(target),
      )
      .filter(({ target }) => {
        const [name] = /^(@[^/]+\/)?[^/]+/.exec(target) ?? [target];
        return !Object.hasOwn(dependencies, name);
      });
    expect(missing).toEqual([]);
  });

  test('the service does not depend on fixtures or tests', () => {
    expect(imports.filter(({ target }) => target.startsWith('..'))).toEqual([]);
  });
});

test('a docstring begins with a noun, a verb or "Whether"', () => {
  const first = /\/\*\*[\s*]*(?:What|That|Of|Whose|How|Who|Which)\b[^\n]*/g;
  expect(readFiles(SOURCES).flatMap(([, text]) => text.match(first) ?? [])).toEqual([]);
});

describe('tests use the service through its public modules', () => {
  const isSeam = (target: string): boolean =>
    /^(client|contract|config)\/|^(app|main)\.ts$|(^|\/)ports\.ts$/.test(target);
  const deep = readImports(TESTS)
    .filter(({ isLocal, target }) => isLocal && !target.startsWith('..') && !isSeam(target))
    // Tests of pure modules state properties.
    .filter(({ file, target }) => !(file.startsWith('formats/') && target.startsWith('formats/')));
  const isTest = (file: string): boolean => /\.test\.tsx?$/.test(file);
  const filesOf = (kind: boolean): string[] =>
    [...new Set(deep.map(({ file }) => file))].filter((file) => isTest(file) === kind).sort();

  test('except those on a list, which must not grow', () => {
    expect(filesOf(true)).toEqual([...deepTests].sort());
    expect(filesOf(false)).toEqual([...deepHelpers].sort());
    expect(deepTests.length).toBeLessThanOrEqual(MAX_DEEP_TESTS);
  });
});
