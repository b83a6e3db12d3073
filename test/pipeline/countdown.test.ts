import { expect, onTestFinished, test, vi } from 'vitest';
import { Countdown } from '../../src/pipeline/abort.ts';
import { settle, standStill } from '../support/deferred.ts';

function start(timeoutMs: number) {
  const onEnd = vi.fn();
  const countdown = new Countdown(timeoutMs, onEnd);
  onTestFinished(() => countdown.stop());
  return { countdown, onEnd };
}

test.each([100, 400])('a countdown of %i ms does not count a standstill', async (timeoutMs) => {
  const { countdown, onEnd } = start(timeoutMs);
  standStill(1_500);
  // Its timer fires, and what has arrived is received.
  await settle(2);
  expect(onEnd).not.toHaveBeenCalled();
  expect(countdown.leftMs).toBe(timeoutMs);
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce());
  expect(countdown.leftMs).toBeLessThanOrEqual(0);
});

test('a countdown counts a delay that a busy event loop causes', async () => {
  const { onEnd } = start(900);
  for (let round = 0; round < 2; round += 1) {
    standStill(600);
    await settle();
  }
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce(), { timeout: 100 });
});

test('a countdown that is stopped does not end', async () => {
  const { countdown, onEnd } = start(20);
  countdown.stop();
  standStill(40);
  await settle();
  expect(onEnd).not.toHaveBeenCalled();
});
