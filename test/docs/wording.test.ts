import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { documents } from './document-commands.ts';

/** Words and phrases that are never right here, each with what to write instead. */
const phrases: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\b(?:is|are|was|were|be|been) (?:told|asked|judged|blamed|held)\b/, 'name the actor'],
  [/\b(?:is|are|was|were) given\b(?! up)/, 'receives, or name the actor'],
  [/\btells?\b|\btold\b/, 'reports, returns, declares, distinguishes'],
  [/\bsays? nothing\b/, 'does not mean, does not reveal'],
  [/(?<!` )\b(?:is|are) none\b/, 'negate the verb: missing, not found, unset'],
  [/\bof no\b/, 'negate the verb'],
  [/\bthose who\b|\bwhoever\b/, 'you, clients, operators'],
  [/\bin the place of\b/, 'instead of'],
  [/\bbeside\b/, 'next to, compared with, in addition to'],
  [/\bbut for\b/, 'except'],
  [/\banew\b/, 'again, re-'],
  [/\bmeanwhile[.;:)]/, 'Meanwhile, … at the beginning'],
  [/\bgo(?:es)? on\b/, 'continue'],
  [/\bhas become of\b|\bhave become of\b/, 'what happened to'],
  [/\bmoving pictures?\b/, 'animation, video'],
  [/\bthe farthest\b/, 'the first, the last'],
];

/** Directories whose comments, strings and identifiers are checked like documents, with their subdirectories. */
const directories = ['bench/harness', 'test/config', 'test/docs', 'test/metrics', 'tools/mutants'];

/** Files that contain the phrases on purpose: this one. */
const exceptions = ['test/docs/wording.test.ts'];

const files = [
  ...documents,
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'fixtures/README.md',
  ...readdirSync('bench').flatMap((name) => (name.endsWith('.md') ? [join('bench', name)] : [])),
  ...directories.flatMap((directory) =>
    readdirSync(directory, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|tsx|mjs)$/.test(name))
      .map((name) => join(directory, name)),
  ),
].filter((file) => !exceptions.includes(file));

/**
 * Blanks out code in Markdown and names of variables, which have a value `none`, and splits identifiers of source files
 * into words: `wasAsked` is `was asked`.
 */
function readWords(file: string): string {
  const text = readFileSync(file, 'utf8');
  const blank = (code: string): string => code.replaceAll(/[^\n]/g, '`');
  if (!file.endsWith('.md')) {
    return text
      .replaceAll(/\b[A-Z]{2}[A-Z0-9_]*\b/g, blank)
      .replaceAll(/([a-z])([A-Z])|_/g, '$1 $2')
      .toLowerCase();
  }
  return text.replaceAll(/^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)/gms, blank).toLowerCase();
}

/** Finds phrases, also across line breaks, with their lines. */
function findPhrases(words: string): string[] {
  return phrases.flatMap(([phrase, instead]) => {
    const spaced = new RegExp(phrase.source.replaceAll(' ', '\\s+(?:[*/#]+\\s*)*'), 'g');
    return [...words.matchAll(spaced)].map((match) => {
      const line = words.slice(0, match.index).split('\n').length;
      return `line ${line}: "${match[0]}"; instead: ${instead}`;
    });
  });
}

describe('the check of wording', () => {
  test.each([
    ['a file that is\n * given', 1],
    ['wasAsked is\nnone', 1],
    ['it is given up', 0],
    ['it goes\n * on', 1],
    ['Meanwhile, results are served.', 0],
    ['results are served meanwhile.', 1],
  ])('finds in %j: %i', (text, count) => {
    expect(findPhrases(text.toLowerCase())).toHaveLength(count);
  });
});

test.each(files)('%s has no phrase that readers stumble over', (file) => {
  expect(findPhrases(readWords(file))).toEqual([]);
});
