import { setTimeout as wait } from 'node:timers/promises';
import { pino } from 'pino';

const STANDARD_OUTPUT = 1;

/** Bytes that may wait for a slow reader; lines on top of them are dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;

/** Lines are written together up to this length, or after this time in milliseconds: each write wakes a thread. */
const MAX_GATHERED_LENGTH = 16_384;
const GATHERING_MS = 50;

/** Time at the end of the process for what is unwritten, in milliseconds, and how often it is looked at. */
const LAST_WORDS_MS = 500;
const LOOK_MS = 10;

/** Shortest time between two reports of losses while the reader stays too slow, in milliseconds. */
const REPORT_AGAIN_AFTER_MS = 60_000;

/**
 * The standard output, written in the background: a reader that is slow, or does not read at all, does not hold up
 * the service. Lines that it does not take in time are dropped and counted. A process that is killed takes with it
 * the lines that it has gathered.
 */
export class LogOutput {
  readonly #output = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: false,
    maxLength: MAX_UNWRITTEN_BYTES,
    retryEAGAIN: () => performance.now() < this.#flushUntilMs,
  });
  #gathered = '';
  #gathering: NodeJS.Timeout | undefined;
  /** Whether a write has not come to its end, good or bad. */
  #isWriting = false;
  #isFailing = false;
  /** Until when a full pipe is tried again; only the flush at the end of the process has a bound. */
  #flushUntilMs = Number.POSITIVE_INFINITY;
  #lost = 0;
  #reported = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  /** @param report logs how many lines were lost since the last time, once some are taken again */
  constructor(report: (lines: number) => void) {
    this.#output.on('drop', (lines: string) => {
      this.#lost += lines.split('\n').length - 1;
    });
    this.#output.on('drain', () => {
      this.#isWriting = false;
      this.#isFailing = false;
      this.#reportLosses(report);
    });
    // What could not be written is tried again with the next line.
    this.#output.on('error', () => {
      this.#isWriting = false;
      this.#isFailing = true;
    });
    this.#boundLastFlush();
  }

  get linesLost(): number {
    return this.#lost;
  }

  write(line: string): void {
    this.#gathered += line;
    if (this.#gathered.length >= MAX_GATHERED_LENGTH) this.#writeGathered();
    else this.#gathering ??= setTimeout(() => this.#writeGathered(), GATHERING_MS).unref();
  }

  /**
   * Waits until all is written, but not for long.
   *
   * @returns whether the process can end by itself: not while a write hangs, which Node would wait for
   */
  async settle(): Promise<boolean> {
    this.#writeGathered();
    const untilMs = performance.now() + LAST_WORDS_MS;
    while (this.#isWriting && performance.now() < untilMs) await wait(LOOK_MS);
    return !this.#isWriting;
  }

  #writeGathered(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    if (this.#gathered === '') return;
    const lines = this.#gathered;
    this.#gathered = '';
    this.#isWriting = true;
    this.#output.write(lines);
  }

  #reportLosses(report: (lines: number) => void): void {
    const nowMs = performance.now();
    const lines = this.#lost - this.#reported;
    if (lines === 0 || nowMs - this.#reportedAtMs < REPORT_AGAIN_AFTER_MS) return;
    this.#reported = this.#lost;
    this.#reportedAtMs = nowMs;
    report(lines);
  }

  /** pino's own flush would try for ever, also where a disk is full. */
  #boundLastFlush(): void {
    const output = this.#output;
    const flushSync = output.flushSync.bind(output);
    output.flushSync = () => {
      this.#writeGathered();
      if (this.#isFailing) return;
      this.#flushUntilMs = performance.now() + LAST_WORDS_MS;
      try {
        flushSync();
      } catch {
        // There is nowhere left to report it.
      }
    };
  }
}
