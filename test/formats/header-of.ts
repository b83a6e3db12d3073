import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { readImageHeader } from '../../src/formats/containers.ts';
import type { ImageHeader } from '../../src/formats/image-header.ts';

export const corpusFile = (name: string) => readFileSync(`fixtures/corpus/${name}`);

export const corpusCategories: readonly string[] = readdirSync('fixtures/corpus', {
  withFileTypes: true,
})
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Names of the files in categories of the corpus, as `category/file`. */
export function corpusFiles(...categories: readonly string[]): string[] {
  return categories.flatMap((category) =>
    readdirSync(`fixtures/corpus/${category}`).map((file) => `${category}/${file}`),
  );
}

/** The header; `unsupported` for a format that is not decoded, `corrupt` for UNPROCESSABLE_MEDIA. */
export type Verdict = ImageHeader | 'unsupported' | 'corrupt';

/** Fields of a still that has only pixels. */
export const plainStill = {
  orientation: 1,
  frames: 1,
  animation: undefined,
  isClean: true,
} as const;

/** Tests that each file has the verdict, or a header with these fields. */
export function testVerdicts(
  what: string,
  expected: Verdict | Partial<ImageHeader>,
  files: Readonly<Record<string, Uint8Array>>,
): void {
  test.each(Object.entries(files))(`%s: ${what}`, (_, file) => {
    const verdict = verdictOn(file);
    if (typeof expected === 'string') expect(verdict).toBe(expected);
    else expect(verdict).toMatchObject(expected);
  });
}

/** Returns the verdict on a file; throws undocumented errors. */
export function verdictOn(bytes: Uint8Array): Verdict {
  try {
    return readImageHeader(bytes) ?? 'unsupported';
  } catch (error) {
    if (!(error instanceof MediaError && error.cause instanceof Error)) throw error;
    if (error.code !== 'UNPROCESSABLE_MEDIA') throw error;
    return 'corrupt';
  }
}

export function headerOf(bytes: Uint8Array): ImageHeader {
  const verdict = verdictOn(bytes);
  return typeof verdict === 'string' ? expect.fail(`the verdict is ${verdict}`) : verdict;
}
