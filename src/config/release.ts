import { readFileSync } from 'node:fs';

/** Written by `tools/build.mjs`; missing next to the sources. */
const RELEASE_FILE = new URL('../release.json', import.meta.url);

/** The path is the same from the compiled file and from its source. */
const PACKAGE_FILE = new URL('../../package.json', import.meta.url);

/** The commit is abbreviated, and missing without a build. */
export function readRelease() {
  const { version } = readJson(PACKAGE_FILE);
  const { commit } = readJson(RELEASE_FILE);
  return { version: version ?? 'unknown', ...(commit !== undefined && { commit }) };
}

function readJson(file: URL): Readonly<Record<string, string | undefined>> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}
