import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCES = resolve(import.meta.dirname, '../src');

/** Folders from the top down; a folder may import from those named beside it, and from itself. */
const floors: Readonly<Record<string, readonly string[]>> = {
  cli: ['', 'config', 'storage', 'workers', 'pipeline', 'formats', 'contract'],
  // The composition root.
  '': [
    'config',
    'default-avatars',
    'explorer',
    'http',
    'storage',
    'telemetry',
    'workers',
    'pipeline',
    'contract',
  ],
  http: ['default-avatars', 'explorer', 'telemetry', 'pipeline', 'contract'],
  storage: ['config', 'pipeline', 'contract'],
  workers: ['pipeline', 'formats', 'contract'],
  telemetry: ['config', 'pipeline', 'contract'],
  'default-avatars': ['contract'],
  explorer: ['contract'],
  pipeline: ['config', 'formats', 'contract'],
  config: ['contract'],
  formats: ['contract'],
  contract: [],
};

/** Packages and Node modules that a folder may use; what is not named here it may not. */
const allowedPackages: Readonly<Record<string, readonly RegExp[]>> = {
  cli: [/^node:/],
  '': [/^node:/, /^(fastify|pino)$/],
  config: [/^node:(fs|net|os|path|tls|url)$/],
  http: [/^node:/, /^(fastify|ipaddr\.js|lru-cache)$/],
  storage: [/^node:/, /^(ipaddr\.js|lru-cache|undici)$/, /^@(aws-sdk|smithy)\//],
  telemetry: [/^node:/, /^pino(-pretty)?$/, /^prom-client$/, /^@opentelemetry\//],
  workers: [/^node:/, /^sharp$/, /^libheif-js\//],
  'default-avatars': [/^node:(crypto|fs\/promises)$/],
  explorer: [/^node:(fs\/promises|path)$/, /^@?preact(\/(compat|hooks|signals))?$/], // the latter in its page
  pipeline: [/^node:(crypto|events|stream)$/, /^(file-type|lru-cache)$/, /^@opentelemetry\/api$/],
  formats: [/^node:zlib$/], // for a profile inside a PNG: pure, no I/O
  contract: [/^node:crypto$/, /^zod$/], // for signatures and digests: pure, no I/O
};

interface Import {
  readonly file: string;
  readonly folder: string;
  readonly target: string;
}

function readImports(): Import[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.tsx?$/.test(file),
  );
  return files.flatMap((file) => {
    const text = readFileSync(join(SOURCES, file), 'utf8');
    const specifiers = text.matchAll(
      /^(?:import|export)\b[^;]*?from '([^']+)'|\bimport\('([^']+)'\)/gms,
    );
    return [...specifiers].map((match) => ({
      file,
      folder: folderOf(file),
      target: match[1] ?? match[2] ?? '',
    }));
  });
}

function folderOf(file: string): string {
  return file.includes('/') ? (file.split('/')[0] ?? '') : '';
}

const imports = readImports();
const isLocal = ({ target }: Import): boolean => target.startsWith('.');

describe('the floors', () => {
  test('something is measured', () => {
    expect(imports.filter(isLocal).length).toBeGreaterThan(80);
    expect(new Set(imports.map(({ folder }) => folder))).toEqual(new Set(Object.keys(floors)));
  });

  test.each(Object.keys(floors))('imports of "%s" point down', (folder) => {
    const upward = imports
      .filter((entry) => entry.folder === folder && isLocal(entry))
      .map(({ file, target }) => ({
        file,
        target: relative(SOURCES, resolve(SOURCES, dirname(file), target)),
      }))
      .filter(
        ({ target }) => folderOf(target) !== folder && !floors[folder]?.includes(folderOf(target)),
      );
    expect(upward).toEqual([]);
  });

  test.each(Object.keys(floors))('"%s" uses only the packages of its floor', (folder) => {
    const foreign = imports.filter(
      (entry) =>
        entry.folder === folder &&
        !isLocal(entry) &&
        !allowedPackages[folder]?.some((pattern) => pattern.test(entry.target)),
    );
    expect(foreign).toEqual([]);
  });

  test('sharp is imported by workers alone, process.* used by entry points alone', () => {
    const users = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .filter((file) =>
        /(?<!-)\bprocess\.\w/.test(stripComments(readFileSync(join(SOURCES, file), 'utf8'))),
      );
    expect(users.sort()).toEqual([
      'cli/main.ts',
      'main.ts',
      'workers/child/main.ts',
      'workers/starter/main.ts',
    ]);
    // Where Node itself is, to start workers with it, and how to end them.
    const importers = imports.filter(({ target }) => /^(node:)?process$/.test(target));
    expect(importers.map(({ file }) => file).sort()).toEqual([
      'workers/confinement/launchers.ts',
      'workers/process-tree.ts',
    ]);
    const folders = imports
      .filter(({ target }) => target === 'sharp')
      .map(({ file }) => file.split('/').slice(0, 2).join('/'));
    expect(new Set(folders)).toEqual(new Set(['workers/child']));
  });

  test('no module goes in circles', () => {
    const graph = new Map<string, string[]>();
    for (const { file, target } of imports.filter(isLocal)) {
      const to = relative(SOURCES, resolve(SOURCES, dirname(file), target));
      graph.set(file, [...(graph.get(file) ?? []), to]);
    }
    expect(findCircle(graph)).toBeUndefined();
  });

  test('a circle would be found', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['a']],
    ]);
    expect(findCircle(graph)).toEqual(['a', 'b', 'c', 'a']);
  });

  test('nothing of the service depends on fixtures or tests', () => {
    const outside = imports.filter(
      ({ file, target }) =>
        target.startsWith('.') &&
        !resolve(SOURCES, dirname(file), target).startsWith(`${SOURCES}/`),
    );
    expect(outside).toEqual([]);
  });
});

function findCircle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const finished = new Set<string>();
  const visit = (node: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (finished.has(node)) return undefined;
    for (const next of graph.get(node) ?? []) {
      const circle = visit(next, [...path, node]);
      if (circle !== undefined) return circle;
    }
    finished.add(node);
    return undefined;
  };
  for (const node of graph.keys()) {
    const circle = visit(node, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

function stripComments(text: string): string {
  return text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '');
}
