import { afterEach, beforeEach, expect } from 'vitest';
import { settle } from './deferred.ts';

/** Fails each test of the file in which a promise was rejected that nothing listened to. */
export function expectNoUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => {
    unhandled.length = 0;
    process.on('unhandledRejection', note);
  });
  afterEach(async () => {
    await settle(); // Node reports them after the promises have had their turn
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
}
