import { readFileSync } from 'node:fs';

/** Written by the build (`tools/write-release.mjs`); missing beside the sources. */
const BUILT = new URL('../release.json', import.meta.url);

/** The path is the same from the compiled file and from its source. */
const PACKAGE = new URL('../../package.json', import.meta.url);

/**
 * Reads the release of this program from files that come with it: the version of `package.json`, and the abbreviated
 * git commit of the build, if the build knew its commit.
 */
export function readRelease() {
  const { version } = readJson(PACKAGE);
  const { commit } = readJson(BUILT);
  return { version: version ?? 'unknown', ...(commit !== undefined && { commit }) };
}

/** Reads the texts of a JSON object; empty if the file is missing. */
function readJson(file: URL): Readonly<Record<string, string | undefined>> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}
