import { describe, test } from 'vitest';
import { expectAlike, questions, refusals, shareEnforcingApp } from './refusals.ts';

const service = shareEnforcingApp();

describe.each(Object.entries(questions))(
  'asked for %s, a missing attachment gets',
  (_, question) => {
    test.each(Object.entries(refusals))('what a URL gets with %s', (__, refuse) =>
      expectAlike(service, refuse, question),
    );
  },
);
