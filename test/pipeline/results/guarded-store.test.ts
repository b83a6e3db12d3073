import { describe, expect, test } from 'vitest';
import { type ResultStore, type StoredResult, StoreStalled } from '../../../src/pipeline/ports.ts';
import { RequestTrace } from '../../../src/pipeline/request-trace.ts';
import { GuardedStore } from '../../../src/pipeline/results/guarded-store.ts';
import { PrometheusMeter } from '../../../src/telemetry/prometheus-meter.ts';
import { settle } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { FakeClock } from '../../support/test-app.ts';

const MEBIBYTE = 1024 * 1024;
const signal = new AbortController().signal;
const rendering = { originKey: 'avatars/1/ab', key: 'k', originalEtag: 'e', release: '1' };

/** Guards a store whose writes a removal waits 20 ms for. */
const guard = (store: ResultStore): GuardedStore =>
  new GuardedStore({
    store,
    clock: new FakeClock(),
    log: new RecordedLog(),
    meter: new PrometheusMeter(),
    settleTimeoutMs: 20,
  });

/** Says at once how large a rendering is, and gives it when it is told. */
class SlowStore extends MemoryResultStore {
  readonly sizes = new Map<string, number>();
  readonly #pending: (() => void)[] = [];

  override async read(...[{ key }, , takeRoom]: Parameters<MemoryResultStore['read']>) {
    const sizeBytes = this.sizes.get(key);
    if (sizeBytes === undefined || !takeRoom(sizeBytes)) return undefined;
    await new Promise<void>((resolve) => this.#pending.push(resolve));
    return { body: Buffer.from(key), mimeType: 'image/webp' };
  }

  finishAll(): void {
    for (const finish of this.#pending.splice(0)) finish();
  }
}

describe('reads from the store', () => {
  const create = () => {
    const store = new SlowStore();
    const guarded = guard(store);
    const find = (key: string, sizeBytes: number): Promise<StoredResult | undefined> => {
      store.sizes.set(key, sizeBytes);
      return guarded.find({ ...rendering, key }, signal);
    };
    return { store, find };
  };

  test('take no more memory together than there is for them', async () => {
    const { store, find } = create();
    const first = find('first', 100 * MEBIBYTE);
    await Promise.resolve();
    expect(await find('too large beside it', 29 * MEBIBYTE)).toBeUndefined();
    const second = find('second', 28 * MEBIBYTE);
    await new Promise(setImmediate);
    store.finishAll();
    expect(await first).toBeDefined();
    expect(await second).toBeDefined();

    const later = find('too large beside it', 29 * MEBIBYTE);
    await new Promise(setImmediate);
    store.finishAll();
    expect(await later).toBeDefined();
  });

  test('of one that is larger than all of it are alone', async () => {
    const { store, find } = create();
    const large = find('large', 200 * MEBIBYTE);
    await new Promise(setImmediate);
    expect(await find('small', 1)).toBeUndefined();
    store.finishAll();
    expect(await large).toBeDefined();
  });
});

describe('a removal from the store', () => {
  const result = { body: Buffer.from('x'), mimeType: 'image/webp' };

  test('does not wait for ever for a write that hangs', async () => {
    const store = new MemoryResultStore();
    store.write = () => new Promise(() => undefined);
    const guarded = guard(store);
    guarded.add(rendering, result, new RequestTrace(new FakeClock()));
    await expect(guarded.remove(['avatars/1/'], () => true)).rejects.toThrow(
      new StoreStalled('Writes have not ended within 20 ms.'),
    );
    expect(store.removals).toBe(0);
  });

  test('is one of two at the same time, however many are asked for', async () => {
    const store = new MemoryResultStore();
    const ends: (() => void)[] = [];
    store.remove = () =>
      new Promise((resolve) => {
        ends.push(() => resolve(1));
      });
    const guarded = guard(store);
    const removals = Array.from({ length: 5 }, () => guarded.remove(['avatars/1/'], () => true));
    for (const begun of [2, 3, 4, 5, 5]) {
      await settle();
      expect(ends).toHaveLength(begun);
      ends[begun === 5 ? 3 : begun - 2]?.();
    }
    ends[4]?.();
    expect(await Promise.all(removals)).toEqual([1, 1, 1, 1, 1]);
  });
});
