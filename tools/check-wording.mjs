// Finds words that readers stumble over, in documents, comments, strings and identifiers: `node tools/check-wording.mjs`
// checks all files of the repository, with paths as arguments only those. Part of `npm run lint`.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Forbidden words and phrases, each with its replacement. */
const PHRASES = [
  [/\b(?:is|are|was|were|be|been) (?:told|held)\b/, 'name the actor'],
  [/\b(?:is|are|was|were) given\b(?! up)/, 'receives, or name the actor'],
  // `asked:` is a field of log entries.
  [/(?<!frequently )\bask(?:s|ed|ing)?\b(?!:)/, 'request, query, contact'],
  [/\btells?\b|\btold\b|\btelling\b/, 'report, return, declare, distinguish'],
  [/\bsays? nothing\b/, 'does not mean, does not reveal'],
  [/\bjudge[sd]?\b|\bjudge?ments?\b|\bjudging\b/, 'check, decide, compare'],
  [/\bblame[sd]?\b|\bblaming\b|\bguilty\b/, 'at fault, quarantine'],
  [/\bnobody\b|\bthose who\b|\bwhoever\b/, 'you, no client, operators'],
  [/\b(?:is|are|was|were) no such\b|\bof no\b/, 'negate the verb: missing, not found, unknown'],
  [/(?<!` )\b(?:is|are) none\b/, 'negate the verb: missing, not found, unset'],
  [
    /(?<!\bthere )\b(?:is|are|was|were) no (?!longer|more|less|later|greater|larger|smaller|different)[a-z]/,
    'negate the verb: is not an IP address',
  ],
  [/\bin the place of\b/, 'instead of'],
  [/\bbeside\b/, 'next to, compared with, in addition to'],
  [/\bbut for\b/, 'except'],
  [/\bwhatever\b/, 'any, regardless of'],
  [/\banew\b/, 'again, re-'],
  [/\bmeanwhile[.;:)]/, 'Meanwhile, … at the beginning'],
  [/\bgo(?:es)? on\b|\bgoing on\b|\bwent on\b/, 'continue'],
  [/\bha(?:s|ve) become of\b/, 'what happened to'],
  [/\bmoving pictures?\b/, 'animation, video'],
  [/\bthe farthest\b/, 'the first, the last'],
  [/\bupright\b/, 'auto-oriented, rotated'],
  [/\bwalls?\b(?! (?:clock|time))/, 'sandbox, isolation'],
  // `folder` is a field of the log.
  [/\bfolders?\b(?!: (?:this|directory)\b)/, 'directory'],
];

const CHECKED = /\.(?:md|ts|tsx|mjs|css|html|yml|sh)$|^\.ci\/run$|^Dockerfile$/;

/** Members of published or stored JSON, in source files. */
const JSON_MEMBERS = /\b(?:askedAtMs|judged)\b/g;

/** Third-party texts, and the two files that contain the phrases on purpose. */
const EXCEPTIONS =
  /^(?:CODE_OF_CONDUCT\.md|tools\/check-wording\.mjs|test\/docs\/wording\.test\.ts)$|^fixtures\/(?!README)/;

/** Blanks out code in Markdown and variable names, whose value may be `none`; splits `wasAsked` into `was asked`. */
function readWords(file, text) {
  const blank = (code) => code.replaceAll(/[^\n]/g, '`');
  if (file.endsWith('.md')) {
    return text.replaceAll(/^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)/gms, blank).toLowerCase();
  }
  return text
    .replaceAll(/\b[A-Z]{2}[A-Z0-9_]*\b/g, blank)
    .replaceAll(JSON_MEMBERS, blank)
    .replaceAll(/([a-z])([A-Z])|_/g, '$1 $2')
    .toLowerCase();
}

/** Finds phrases, also across line breaks and comment markers; the extension of `file` decides what is code. */
export function findPhrases(file, text) {
  const words = readWords(file, text);
  return PHRASES.flatMap(([phrase, instead]) => {
    const spaced = new RegExp(phrase.source.replaceAll(' ', '\\s+(?:[*/#]+\\s*)*'), 'g');
    return [...words.matchAll(spaced)].map((match) => ({
      line: words.slice(0, match.index).split('\n').length,
      phrase: match[0].replaceAll(/\s+(?:[*/#]+\s*)*/g, ' '),
      instead,
    }));
  });
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) {
  const paths = process.argv.slice(2);
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...paths],
    {
      encoding: 'utf8',
    },
  );
  const files = listed.split('\0').filter((file) => CHECKED.test(file) && !EXCEPTIONS.test(file));
  let count = 0;
  for (const file of files) {
    for (const { line, phrase, instead } of findPhrases(file, readFileSync(file, 'utf8'))) {
      console.error(`${file}:${line}: "${phrase}"; instead: ${instead}`);
      count += 1;
    }
  }
  if (count > 0) process.exitCode = 1;
}
