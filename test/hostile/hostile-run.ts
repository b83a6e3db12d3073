import { expect } from 'vitest';
import { FireReport } from './fire-report.ts';
import { ServiceUnderFire, type Shot } from './service-under-fire.ts';
import { findFaults } from './verdict.ts';

/**
 * Slowest answer to the probe that is let pass, in milliseconds. What a health check would wait for:
 * the machine is shared, and stalls from 100 ms on are in the report.
 */
const MAX_PROBE_MS = 2_000;

/**
 * Bound of the main process's resident memory, in bytes. Measured: 513 MiB. That is 256 MiB of results,
 * and some copies of originals of 50 MiB on their way into a worker.
 */
const MAX_MAIN_BYTES = 2 ** 30;

/**
 * Bound of a worker's resident memory, in bytes: what `WORKER_MEMORY_BYTES` allows of private memory,
 * and the code it shares. Measured: up to 1903 MiB, for an AVIF of the 100 million pixels that are allowed.
 */
const MAX_WORKER_BYTES = 2_684_354_560 + 128 * 2 ** 20;

/** A suite's service and report, and the verdict on both. */
export class HostileRun {
  readonly fire: ServiceUnderFire;
  readonly report: FireReport;
  #ids = 0;

  private constructor(fire: ServiceUnderFire, report: FireReport) {
    this.fire = fire;
    this.report = report;
  }

  static async start(suite: string): Promise<HostileRun> {
    return new HostileRun(await ServiceUnderFire.start(), new FireReport(suite));
  }

  /** A number that no other request of the run has. */
  nextId(): number {
    this.#ids += 1;
    return this.#ids;
  }

  /** Asks for an original; fails, and leaves it for reproduction, where the answer is not right. */
  async shoot(name: string, original: Buffer, target: string): Promise<Shot> {
    const shot = await this.fire.shoot(original, target).catch((error: unknown) => {
      this.report.keep(name, target, original, [String(error)]);
      throw error;
    });
    const faults = await findFaults(original, target, shot.answer);
    if (shot.answer.status === 200 && shot.again?.status !== 304) {
      faults.push(`status ${shot.again?.status} to somebody who has it already`);
    }
    if (faults.length > 0) faults.push(this.report.keep(name, target, original, faults));
    expect.soft(faults, `${name}, ${target}`).toEqual([]);
    return shot;
  }

  /** The same, alone, with what it costs. */
  async shootAlone(name: string, way: string, original: Buffer, target: string): Promise<Shot> {
    const { fire } = this;
    fire.takePeaks();
    const before = fire.takePeaks();
    const shot = await this.shoot(name, original, target);
    const { startedMs, tookMs } = shot.answer;
    const slowest = fire.probe.slowestWithin(startedMs, startedMs + tookMs);
    this.report.add({
      ...shot,
      name,
      way,
      peaks: fire.takePeaks(),
      before,
      ...(slowest && { probeMs: slowest.tookMs, probeRanMs: slowest.ranMs }),
    });
    return shot;
  }

  /** Good images are served as before the fire, to the byte. */
  async expectGoodImages(): Promise<void> {
    expect(await this.fire.findFaultsOfGoodImages()).toEqual([]);
  }

  /** The service has lived through all of it, within bounds, and has nothing to complain of. */
  expectUnharmed(): void {
    const { log, probe, peaks, pid } = this.fire;
    expect(log.errors).toEqual([]);
    expect(probe.fault).toBeUndefined();
    expect(probe.answers.length).toBeGreaterThan(10);
    expect(probe.answers.filter(({ status }) => status !== 200)).toEqual([]);
    const slowestMs = Math.max(...probe.answers.map(({ tookMs }) => tookMs));
    expect(slowestMs).toBeLessThan(MAX_PROBE_MS);
    expect(Math.min(peaks.main, peaks.worker)).toBeGreaterThan(2 ** 24); // something is measured
    expect(peaks.main).toBeLessThan(MAX_MAIN_BYTES);
    expect(peaks.worker).toBeLessThan(MAX_WORKER_BYTES);
    expect(() => process.kill(pid, 0)).not.toThrow();
  }

  async stop(): Promise<void> {
    const { log, probe, peaks, client } = this.fire;
    const slowest = probe.slowestWithin(0, Number.POSITIVE_INFINITY);
    this.report.note(
      `peaks: main ${mebibytes(peaks.main)} MiB, worker ${mebibytes(peaks.worker)} MiB; workers lost: ${log.lostWorkers}`,
    );
    this.report.note(
      `slowest of ${probe.answers.length} probes: ${slowest?.tookMs.toFixed(0)} ms (main thread running for ${slowest?.ranMs.toFixed(0)} ms); 503 and asked again: ${client.turnedAway}`,
    );
    for (const line of new Set(log.stray)) this.report.note(`on standard error: ${line}`);
    this.report.write((target) => log.refusalOf(target)?.reason ?? '');
    await this.fire.stop();
  }
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
