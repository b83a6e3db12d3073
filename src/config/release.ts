import { readFileSync } from 'node:fs';

/** Written by the build (`tools/write-release.mjs`); there is none beside the sources. */
const BUILT = new URL('../release.json', import.meta.url);

/** Seen from the compiled file, and from its source. */
const PACKAGE = new URL('../../package.json', import.meta.url);

/**
 * Reads which release of the program this is, from files that come with it: the version of `package.json`, and the git
 * commit that it was built from, abbreviated, if the build knew it.
 */
export function readRelease() {
  const { version } = readJson(PACKAGE);
  const { commit } = readJson(BUILT);
  return { version: version ?? 'unknown', ...(commit !== undefined && { commit }) };
}

/** The texts of a JSON object; none where there is no such file. */
function readJson(file: URL): Readonly<Record<string, string | undefined>> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}
