import { expect, test } from 'vitest';
import { MAX_BLOCKS, parseBlockOrder } from '../../src/contract/block-order.ts';
import { MediaError } from '../../src/contract/errors.ts';

test('a request with many unknown members gets at most as many errors as it can have entries', () => {
  const members = Array.from({ length: 3 * MAX_BLOCKS }, (_, index) => [`member ${index}`, 1]);
  try {
    parseBlockOrder(Object.fromEntries(members));
    expect.fail('the order was accepted');
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    expect(error.faults).toHaveLength(MAX_BLOCKS);
  }
});
