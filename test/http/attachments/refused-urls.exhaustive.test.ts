import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compare, type EnforcingApp, questions, refusals, startEnforcing } from './refusals.ts';

let service: EnforcingApp;

beforeAll(async () => {
  service = await startEnforcing();
});
afterAll(() => service.app.close());

describe.each(Object.entries(questions))(
  'asked for %s, a missing attachment gets',
  (_, question) => {
    test.each(Object.entries(refusals))('what a URL gets with %s', async (__, refuse) => {
      const { shownStatus, rounds } = await compare(service, refuse, question);
      expect(shownStatus).toBe(200);
      for (const { expected, refused } of rounds) {
        for (const response of refused) expect(response).toBe(expected);
      }
    });
  },
);
