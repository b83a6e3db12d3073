import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import { defer } from '../deferred.ts';
import { MemoryObjects } from '../memory-objects.ts';
import { metricsSettings } from '../telemetry/prometheus-text.ts';
import { createTestApp, FakeClock, type TestAppOptions } from '../test-app.ts';
import { AWS_KEYS, CDN_TOKEN, CDN_ZONE, type CdnName, startCdnApi } from './cdn-server.ts';

export function cdnSettings(name: CdnName, { url }: { readonly url: string }) {
  return {
    ...metricsSettings,
    ...{ BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(tmpdir(), 'blocks.jsonl') },
    ...{
      EDGE: name,
      EDGE_ZONE: CDN_ZONE,
      EDGE_API: url,
      ...(name !== 'cloudfront' && { EDGE_TOKEN: CDN_TOKEN }),
    },
    TRANSFORM_TIMEOUT_MS: '15000',
  };
}

/** Creates apps that share the block list, a CDN's API, and a clock that only `pass` advances. */
export async function useCdnReplicas(name: CdnName, options: TestAppOptions = {}) {
  const clock = new FakeClock();
  const cdn = await startCdnApi(name, () => clock.nowMs());
  const objects = new MemoryObjects();
  if (name === 'cloudfront') {
    vi.stubEnv('AWS_ACCESS_KEY_ID', AWS_KEYS.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', AWS_KEYS.secretAccessKey);
    onTestFinished(() => void vi.unstubAllEnvs());
  }
  /** Running apps, with the number of their loops that sleep. */
  const present = new Set<{ sleeping: number }>();
  const open = async () => {
    const self = { sleeping: 0 };
    let gate = defer<void>();
    gate.resolve();
    const resume = (): void => {
      gate.resolve();
      present.add(self);
    };
    const app = await createTestApp({
      ...options,
      clock,
      objects: {
        read: (...args) => gate.promise.then(() => objects.read(...args)),
        findTag: (...args) => gate.promise.then(() => objects.findTag(...args)),
        write: (...args) => gate.promise.then(() => objects.write(...args)),
        list: (...args) => gate.promise.then(() => objects.list(...args)),
        remove: (...args) => gate.promise.then(() => objects.remove(...args)),
      },
      sleep: async (durationMs, signal) => {
        self.sleeping += 1;
        await clock.sleep(durationMs, signal);
        self.sleeping -= 1;
        await gate.promise;
      },
      wallClock: () => 1_750_000_000_000 + clock.nowMs(),
      settings: { ...cdnSettings(name, cdn), ...options.settings },
    });
    present.add(self);
    const close = async (): Promise<void> => {
      present.delete(self);
      gate.resolve();
      await app.close();
    };
    onTestFinished(close);
    /** Stops the app between two I/O calls, like a killed or suspended process. */
    const suspend = async (): Promise<void> => {
      await settle();
      present.delete(self);
      gate = defer();
    };
    return { ...app, close, suspend, resume };
  };
  /** Waits until both loops of each app sleep: CDN calls and heartbeats. */
  const settle = async (): Promise<void> => {
    const isBusy = () => [...present].some(({ sleeping }) => sleeping < 2);
    do await nextTurn();
    while (isBusy() || cdn.countPending() > 0);
  };
  /** Advances the clock until a condition holds, or by `maxMs`. */
  const pass = async (
    until: () => boolean | Promise<boolean>,
    maxMs = Number.POSITIVE_INFINITY,
  ): Promise<void> => {
    const endMs = clock.nowMs() + maxMs;
    for (await settle(); !(await until()) && clock.nowMs() < endMs; await settle()) {
      clock.advanceToNext();
    }
  };
  return { cdn, objects, clock, open, pass, passFor: (ms: number) => pass(() => false, ms) };
}

/** Like `useCdnReplicas`, with one open replica. */
export async function useCdnApp(...args: Parameters<typeof useCdnReplicas>) {
  const world = await useCdnReplicas(...args);
  return { ...world, app: await world.open() };
}
