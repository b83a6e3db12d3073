import { describe, expect, test } from 'vitest';
import { findPhrases } from '../../tools/check-wording.mjs';

const DOCUMENT = 'page.md';
const SOURCE = 'file.ts';

describe('the check of wording', () => {
  test.each([
    [SOURCE, '/** A file that is\n * given */', ['is given'], 'across lines of a comment'],
    [SOURCE, 'const wasAsked = true;', ['asked'], 'in an identifier'],
    [SOURCE, "log('nobody waits')", ['nobody'], 'in a string'],
    [SOURCE, 'const ORIGIN_IS_NONE = 1;', [], 'not in the name of a variable'],
    [SOURCE, 'it is given up', [], 'not in another meaning'],
    [
      SOURCE,
      'it is no address, there is no address',
      ['is no a'],
      'only where the noun is negated',
    ],
    [DOCUMENT, 'The default is `none`, and `folder` is a field.', [], 'not in code of a document'],
    [DOCUMENT, '```\nis none\n```\n\nIt goes on.', ['goes on'], 'not in a block of code'],
    [DOCUMENT, 'Meanwhile, results are served.', [], 'not at the beginning'],
    [DOCUMENT, 'Results are served meanwhile.', ['meanwhile.'], 'at the end'],
  ])('finds in %s, %j: %j, %s', (file, text, expected) => {
    const found = findPhrases(file, text).map(({ phrase }) => phrase);
    expect(found).toEqual(expected);
  });

  test('reports the line and what to write instead', () => {
    expect(findPhrases(DOCUMENT, 'One.\n\nTwo: it is\nnone.\n')).toEqual([
      { line: 3, phrase: 'is none', instead: expect.stringContaining('missing') },
    ]);
  });
});
