import { describe, expect, test } from 'vitest';
import { describeCorpus, files, WAYS } from './corpus-run.ts';

test.each(['hostile-bomb', 'hostile-corrupt', 'hostile-svg', 'fuzz-jpeg', 'fuzz-png'])(
  'there are files of %s',
  (category) => {
    expect(files.length).toBeGreaterThan(350);
    expect(files.filter((file) => file.startsWith(`${category}/`)).length).toBeGreaterThan(5);
  },
);

describe('the whole corpus, through the service,', () => {
  describeCorpus({ ways: WAYS });
});
