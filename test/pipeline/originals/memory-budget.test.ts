import { describe, expect, test } from 'vitest';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';

const MEBIBYTE = 1024 * 1024;
const overloaded = expect.objectContaining({ code: 'OVERLOADED', retryAfterSeconds: 1 });

describe('the budget of originals', () => {
  test('refuses what does not fit beside the others, until one is let go', () => {
    const budget = new MemoryBudget(100 * MEBIBYTE);
    const first = budget.reserve(50 * MEBIBYTE);
    budget.reserve(50 * MEBIBYTE);
    expect(() => budget.reserve(2 * MEBIBYTE)).toThrow(overloaded);
    first.release();
    first.release();
    expect(budget.heldBytes).toBe(50 * MEBIBYTE);
    budget.reserve(50 * MEBIBYTE);
    expect(() => budget.reserve(2 * MEBIBYTE)).toThrow(overloaded);
  });

  test('lets small ones in, whatever the others hold', () => {
    const budget = new MemoryBudget(100 * MEBIBYTE);
    budget.reserve(100 * MEBIBYTE);
    const small = budget.reserve(MEBIBYTE);
    small.assign('heavy');
    expect(budget.heldBytes).toBe(101 * MEBIBYTE);
    small.release();
    expect(budget.heldBytes).toBe(100 * MEBIBYTE);
  });

  test('counts one that is shared once, and one that was let go not at all', () => {
    const budget = new MemoryBudget(100 * MEBIBYTE);
    const shared = budget.reserve(20 * MEBIBYTE);
    for (let size = 0; size < 5; size += 1) shared.assign('heavy');
    shared.release();
    shared.assign('heavy');
    const next = budget.reserve(50 * MEBIBYTE);
    expect(() => next.assign('heavy')).not.toThrow();
  });

  test('leaves half of it to light renders', () => {
    const budget = new MemoryBudget(100 * MEBIBYTE);
    const heavy = [budget.reserve(30 * MEBIBYTE), budget.reserve(30 * MEBIBYTE)];
    heavy[0]?.assign('heavy');
    expect(() => heavy[1]?.assign('heavy')).toThrow(overloaded);
    heavy[1]?.release();
    const light = budget.reserve(60 * MEBIBYTE);
    expect(() => light.assign('light')).not.toThrow();
    // The room of one that has gone is there for the next.
    heavy[0]?.release();
    light.release();
    expect(() => budget.reserve(50 * MEBIBYTE).assign('heavy')).not.toThrow();
    expect(budget.heldBytes).toBe(50 * MEBIBYTE);
  });
});
