import { expect, test } from 'vitest';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';

const MEBIBYTE = 1024 * 1024;

test('an original that is larger than the budget is admitted while others hold less than half of it', () => {
  const budget = new MemoryBudget(16 * MEBIBYTE);
  const small = budget.reserve(7 * MEBIBYTE);
  const large = budget.reserve(50 * MEBIBYTE);
  large.assign('heavy');
  expect(() => budget.reserve(2 * MEBIBYTE)).toThrow();
  large.release();
  const other = budget.reserve(2 * MEBIBYTE);
  expect(() => budget.reserve(50 * MEBIBYTE)).toThrow();
  small.release();
  other.release();
  expect(budget.heldBytes).toBe(0);
});

// What is refused, and what is shared: test/http/overload.test.ts.
test('an original that was let go counts no more, whatever is still asked of it', () => {
  const budget = new MemoryBudget(100 * MEBIBYTE);
  const gone = budget.reserve(60 * MEBIBYTE);
  for (let time = 0; time < 2; time += 1) gone.release();
  gone.assign('heavy');
  gone.grow(70 * MEBIBYTE);
  expect(budget.heldBytes).toBe(0);
  expect(() => budget.reserve(50 * MEBIBYTE).assign('heavy')).not.toThrow();
});
