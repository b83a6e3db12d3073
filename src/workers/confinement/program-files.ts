import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Files of a program. */
export interface ProgramFiles {
  /** Files and folders; none is inside of another one. */
  readonly paths: readonly string[];
  /** Symbolic links to some of the paths, with their targets (as pnpm lays out packages). */
  readonly links: ReadonlyMap<string, string>;
}

/** Imports in the compiler's output: `from`, `import`, `import()`, `require()`, `resolve()`. */
const SPECIFIER = /(?:\bfrom|\bimport|\b(?:import|require|resolve)\()\s*['"]([^'"\n]+)['"]/g;

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)` (ldd(1)). */
const LIBRARY = /(?:^|\s)(\/.+) \(0x[\da-f]+\)$/gm;

/** Cache by which the loader finds libraries outside of the usual folders. */
const LOADER_CACHE = '/etc/ld.so.cache';

/**
 * Finds all files that Node needs to run a module: the folders of the module and its imports, the packages that these
 * name with their dependencies, and the shared libraries of all. So the worker need not see all of the application's
 * folder nor of the system's programs.
 *
 * @param entry path of the module
 * @param environment of the module: libraries may be preloaded
 * @throws Error if a module or `ldd` is missing
 */
export async function findModuleFiles(
  entry: string,
  environment: Readonly<Record<string, string>>,
): Promise<ProgramFiles> {
  const { folders, packages } = readModules(realpathSync(entry));
  const links = new Map<string, string>();
  const found = new Set<string>();
  for (const { from, name } of packages) addPackage(name, from, found, links);
  const addons = [...found].flatMap(listAddons);
  const libraries = await listLibraries(addons, environment);
  const own = findUpward(dirname(realpathSync(entry)), 'package.json');
  const paths = [...folders, ...found, ...libraries, ...(own === undefined ? [] : [own])];
  return { paths: withoutNested(paths), links };
}

/**
 * Adds programs with their shared libraries.
 *
 * @throws Error if `ldd` is missing
 */
export async function withPrograms(
  { paths, links }: ProgramFiles,
  programs: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<ProgramFiles> {
  const libraries = await listLibraries(programs, environment);
  const cache = existsSync(LOADER_CACHE) ? [LOADER_CACHE] : [];
  return { paths: withoutNested([...paths, ...programs, ...libraries, ...cache]), links };
}

/** Lists the shared libraries of programs, with indirect and preloaded ones. */
async function listLibraries(
  binaries: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string[]> {
  const texts = await Promise.all(
    binaries.map((binary) => run('ldd', [binary], { env: environment })),
  );
  return texts.flatMap(({ stdout }) =>
    [...stdout.matchAll(LIBRARY)].flatMap(([, path]) => (path === undefined ? [] : resolve(path))),
  );
}

interface Modules {
  readonly folders: ReadonlySet<string>;
  readonly packages: readonly { readonly name: string; readonly from: string }[];
}

/** Reads the folders of a module and of all modules that it imports by path, and the packages they name. */
function readModules(entry: string): Modules {
  const seen = new Set([entry]);
  const folders = new Set<string>();
  const packages: { name: string; from: string }[] = [];
  for (const file of seen) {
    folders.add(dirname(file));
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(SPECIFIER)) {
      if (specifier.startsWith('.')) seen.add(resolve(dirname(file), specifier));
      else if (!specifier.startsWith('node:')) {
        const [name = '', more = ''] = specifier.split('/');
        packages.push({ name: name.startsWith('@') ? `${name}/${more}` : name, from: file });
      }
    }
  }
  return { folders, packages };
}

/** Adds a package, as Node resolves it from a file, with its installed dependencies. */
function addPackage(
  name: string,
  from: string,
  found: Set<string>,
  links: Map<string, string>,
): void {
  const path = findUpward(dirname(from), join('node_modules', name));
  if (path === undefined) return; // for another system, or a word that looks like an import
  const folder = realpathSync(path);
  if (folder !== path) links.set(path, folder);
  if (found.has(folder)) return;
  found.add(folder);
  const manifest = join(folder, 'package.json');
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as {
    readonly dependencies?: object;
    readonly optionalDependencies?: object;
  };
  for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
    addPackage(dependency, manifest, found, links);
  }
}

/** Returns a path below the nearest parent folder that contains it. */
function findUpward(folder: string, path: string): string | undefined {
  const candidate = join(folder, path);
  if (existsSync(candidate)) return candidate;
  const above = dirname(folder);
  return above === folder ? undefined : findUpward(above, path);
}

/** Lists the compiled addons of a package, which Node loads; not the libraries that these load. */
function listAddons(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.node'))
    .map((file) => join(folder, file));
}

function withoutNested(paths: readonly string[]): string[] {
  const unique = new Set(paths);
  const isInside = (path: string): boolean => {
    const folder = dirname(path);
    return folder !== path && (unique.has(folder) || isInside(folder));
  };
  return [...unique].filter((path) => !isInside(path)).sort();
}
