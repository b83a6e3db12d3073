import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect } from 'vitest';
import { parseTarget } from '../../src/contract/media-request.ts';
import { watchPeaks } from '../support/processes/process-memory.ts';
import { startService } from '../support/processes/service-process.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { readSample } from '../support/test-app.ts';
import { readServiceLog } from './service-log.ts';
import { findDefects, type ServiceResponse } from './verdict.ts';

/** More than the sum of the service's deadlines: origin, queue, transform. */
const NO_RESPONSE_MS = 60_000;

/** A busy service may return a few 503, but not forever. */
const MAX_ATTEMPTS = 60;

/** Maximum response time of the probe, in milliseconds: the timeout of a health check. */
const MAX_PROBE_MS = 2_000;

/**
 * Maximum resident memory of the main process, in bytes. Measured: 513 MiB, of which 256 MiB are results; the rest is
 * mostly copies of 50 MiB originals on their way to a worker.
 */
const MAX_MAIN_BYTES = 2 ** 30;

/**
 * Maximum resident memory of a worker, in bytes: private memory of `WORKER_MEMORY_BYTES`, and shared code. Measured: up to
 * 1903 MiB, for an AVIF of 100 million pixels, the permitted maximum.
 */
const MAX_WORKER_BYTES = 2_684_354_560 + 128 * 2 ** 20;

/** Valid originals and a request for each, through every encoder, still and animated. */
const GOOD: readonly (readonly [key: string, target: (id: string) => string])[] = [
  ['icons/1/ab12', (id) => `/icons/9/${id}.webp?size=64`],
  ['emojis/1', (id) => `/icons/9/${id}.png?size=32`],
  ['splashes/1/ab12', (id) => `/icons/9/${id}.jpg?size=100`],
  ['avatars/2/cd34', (id) => `/icons/9/${id}.gif?size=48`],
];

const DIRECTORY = 'test-report/hostile';

/** Saves an original and its request for reproduction; returns the directory. */
export function keepOriginal(
  suite: string,
  name: string,
  target: string,
  original: Buffer,
  defects: readonly string[],
): string {
  const directory = join(DIRECTORY, suite, name.replace(/[^\p{L}\d.]+/gu, '-').slice(0, 80));
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'original'), original);
  writeFileSync(join(directory, 'request.txt'), [target, ...defects, ''].join('\n'));
  return directory;
}

/** Starts the real service with default limits and no originals, watches it, and records responses for valid images. */
async function startHostileRun(suite: string) {
  const directory = await makeTemporaryDirectory();
  const service = await startService({ STORAGE_DIR: directory.path, WORKERS: '' });
  const readLog = () => readServiceLog(service.output());
  rmSync(join(DIRECTORY, suite), { recursive: true, force: true });
  const notes = [`Hostile suite: ${suite}`];
  const memory = watchPeaks(service.pid);
  let ids = 0;
  let busyResponses = 0;

  /** Retries after a 503, which never depends on the original. */
  async function get(
    target: string,
    headers: Record<string, string> = {},
  ): Promise<ServiceResponse> {
    for (let attempt = 1; ; attempt += 1) {
      const signal = AbortSignal.timeout(NO_RESPONSE_MS);
      const response = await fetch(new URL(target, service.origin), { headers, signal });
      const body = Buffer.from(await response.arrayBuffer());
      const retryAfter = response.headers.get('retry-after');
      const isFinal = response.status !== 503 || retryAfter === null;
      if (isFinal || attempt === MAX_ATTEMPTS) {
        return { status: response.status, headers: response.headers, body };
      }
      busyResponses += 1;
      await sleep(1000 * Number(retryAfter));
    }
  }

  /** Stores an original, requests it, revalidates the response, and deletes the original. */
  async function fetchOriginal(original: Buffer, target: string) {
    const parsed = parseTarget(target);
    if (parsed.kind !== 'media') throw new Error(`Expected a media path but received ${target}`);
    const key = parsed.request.originKey;
    await directory.put(key, original);
    try {
      const response = await get(target);
      const etag = response.headers.get('etag');
      const again = etag === null ? undefined : await get(target, { 'if-none-match': etag });
      return { response, again };
    } finally {
      await rm(join(directory.path, key));
    }
  }

  const known: Buffer[] = [];
  for (const [index, [key, target]] of GOOD.entries()) {
    await directory.put(`icons/9/known${index}`, readSample(key));
    const { status, body } = await get(target(`known${index}`));
    if (status !== 200) throw new Error(`Expected a good image but received ${status}: ${body}`);
    known.push(body);
  }
  const workerData = `${service.origin}/icons/9/known0.webp?size=64`;
  const prober = new Worker(new URL('./probe-thread.mjs', import.meta.url), { workerData });
  const probes: { readonly status: number; readonly tookMs: number }[] = [];
  prober.on('message', (probe) => probes.push(probe));
  const slowestMs = (): number => Math.max(...probes.map(({ tookMs }) => tookMs));

  /** Requests an original; if the response is wrong, saves the original for reproduction and throws. */
  async function shoot(name: string, original: Buffer, target: string): Promise<ServiceResponse> {
    const { response, again } = await fetchOriginal(original, target).catch((error: unknown) => {
      keepOriginal(suite, name, target, original, [String(error)]);
      throw error;
    });
    const defects = await findDefects(original, target, response);
    if (response.status === 200 && again?.status !== 304) {
      defects.push(`status ${again?.status} to a client that has the response already`);
    }
    if (defects.length > 0) defects.push(keepOriginal(suite, name, target, original, defects));
    expect.soft(defects, `${name}, ${target}`).toEqual([]);
    return response;
  }

  return {
    readLog,
    note: (line: string): void => void notes.push(line),
    nextId: (): number => ++ids,
    shoot,

    /** Expects the same bytes for new valid images as before the hostile ones. */
    expectGoodImages: async (): Promise<void> => {
      for (const [index, [key, target]] of GOOD.entries()) {
        ids += 1;
        const { response } = await fetchOriginal(readSample(key), target(`good${ids}`));
        const isSame = known[index]?.equals(response.body) ?? false;
        expect(isSame, `${key}: ${response.status}, or other bytes`).toBe(true);
      }
    },

    /** Expects that the service still runs, stayed within its limits, and logged no error. */
    expectUnharmed: (): void => {
      expect(readLog().errors).toEqual([]);
      expect(probes.length).toBeGreaterThan(10);
      expect(probes.filter(({ status }) => status !== 200)).toEqual([]);
      expect(slowestMs()).toBeLessThan(MAX_PROBE_MS);
      const peaks = memory.look();
      expect(Math.min(peaks.main, peaks.worker)).toBeGreaterThan(2 ** 24); // something is measured
      expect(peaks.main).toBeLessThan(MAX_MAIN_BYTES);
      expect(peaks.worker).toBeLessThan(MAX_WORKER_BYTES);
      expect(() => process.kill(service.pid, 0)).not.toThrow();
    },

    stop: async (): Promise<void> => {
      const { main, worker } = memory.look();
      const { lostWorkers, stray } = readLog();
      notes.push(
        `peaks in bytes: main ${main}, worker ${worker}; workers lost: ${lostWorkers}`,
        `slowest of ${probes.length} probes: ${slowestMs()} ms; 503 with a retry: ${busyResponses}`,
        ...[...stray].map((line) => `on standard error: ${line}`),
      );
      process.stdout.write(`${notes.join('\n  ')}\n`);
      memory.stop();
      await prober.terminate();
      await service.stop();
      await directory.remove();
    },
  };
}

/** Shares a run between all tests of a file; at the end, the service must be intact. */
export function shareHostileRun(suite: string) {
  let run: Awaited<ReturnType<typeof startHostileRun>>;
  beforeAll(async () => {
    run = await startHostileRun(suite);
  });
  afterAll(async () => {
    try {
      run.expectUnharmed();
    } finally {
      await run.stop();
    }
  });
  return () => run;
}
