import { execFile } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface WorkerProgram {
  /** Path of the worker's bundle, which lacks only `PACKAGES`. */
  readonly workerFile: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface ProgramFiles {
  /** Files and directories, none inside another. */
  readonly paths: readonly string[];
  /** Targets of symbolic links, as in pnpm's layout of packages. */
  readonly links: ReadonlyMap<string, string>;
}

/** Packages with compiled code, which the bundle cannot contain. */
const PACKAGES = ['sharp', 'libheif-js'];

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)` (ldd(1)). */
const LIBRARY = /(?:^|\s)(\/.+) \(0x[\da-f]+\)$/gm;

/** Cache with which the loader finds libraries in unusual directories. */
const LOADER_CACHE = '/etc/ld.so.cache';

/**
 * Lists the files that the worker and its launchers need, preloaded libraries included. The worker sees no other file
 * of the application or the system. @throws Error if a file or `ldd` is missing
 */
export async function listProgramFiles(
  { workerFile, environment }: WorkerProgram,
  programs: readonly string[],
): Promise<ProgramFiles> {
  const entry = realpathSync(workerFile);
  const packages = new Set<string>();
  const links = new Map<string, string>();
  for (const name of PACKAGES) addPackage(name, entry, packages, links);
  const binaries = [...programs, ...[...packages].flatMap(listAddons)];
  const libraries = await Promise.all(binaries.map((binary) => listLibraries(binary, environment)));
  const manifest = findUpward(dirname(entry), 'package.json') ?? [];
  const optional = [`${entry}.map`, LOADER_CACHE].filter((path) => existsSync(path));
  const paths = [entry, manifest, optional, [...packages], programs, libraries].flat(2);
  return { paths: withoutNested(paths), links };
}

async function listLibraries(
  binary: string,
  environment: Readonly<Record<string, string>>,
): Promise<string[]> {
  const { stdout } = await run('ldd', [binary], { env: environment });
  return [...stdout.matchAll(LIBRARY)].map(([, path = '']) => resolve(path));
}

/**
 * Lists a system program and the directories of its libraries: to mount each of some 200 libraries would double the
 * time of its start. @throws Error if it is missing
 */
export async function listSystemProgram(
  program: string,
  environment: Readonly<Record<string, string>>,
): Promise<ProgramFiles> {
  // `ldd` fails for a statically linked program.
  const libraries = await listLibraries(program, environment).catch((): string[] => []);
  const directories = libraries.flatMap(listLinks).map(dirname);
  const optional = [LOADER_CACHE].filter((path) => existsSync(path));
  return { paths: withoutNested([program, ...directories, ...optional]), links: new Map() };
}

function listLinks(path: string): string[] {
  const found = new Set<string>();
  let next = path;
  while (!found.has(next)) {
    found.add(next);
    if (lstatSync(next).isSymbolicLink()) next = resolve(dirname(next), readlinkSync(next));
  }
  return [...found];
}

function addPackage(
  name: string,
  from: string,
  found: Set<string>,
  links: Map<string, string>,
): void {
  const path = findUpward(dirname(from), join('node_modules', name));
  if (path === undefined) return; // a dependency of another platform
  const directory = realpathSync(path);
  if (directory !== path) links.set(path, directory);
  if (found.has(directory)) return;
  found.add(directory);
  const manifest = join(directory, 'package.json');
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as {
    readonly dependencies?: object;
    readonly optionalDependencies?: object;
  };
  for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
    addPackage(dependency, manifest, found, links);
  }
}

/** Returns a path in the nearest parent directory that contains it. */
function findUpward(directory: string, path: string): string | undefined {
  const candidate = join(directory, path);
  if (existsSync(candidate)) return candidate;
  const above = dirname(directory);
  return above === directory ? undefined : findUpward(above, path);
}

/** Lists the compiled addons of a package, without their libraries. */
function listAddons(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.node'))
    .map((file) => join(directory, file));
}

function withoutNested(paths: readonly string[]): string[] {
  const unique = new Set(paths);
  const isInside = (path: string): boolean => {
    const directory = dirname(path);
    return directory !== path && (unique.has(directory) || isInside(directory));
  };
  return [...unique].filter((path) => !isInside(path)).sort();
}
