import { expect, test } from 'vitest';
import { MAX_BLOCKS, parseBlockRequest } from '../../src/contract/block-request.ts';
import { MediaError } from '../../src/contract/errors.ts';

test('limits the number of errors about unknown members to the maximum number of entries', () => {
  const members = Array.from({ length: 3 * MAX_BLOCKS }, (_, index) => [`member ${index}`, 1]);
  try {
    parseBlockRequest(Object.fromEntries(members));
    expect.fail('the request was accepted');
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    expect(error.faults).toHaveLength(MAX_BLOCKS);
  }
});
