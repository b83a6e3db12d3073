import { constants, fstatSync, openSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { pino } from 'pino';

/** What is not yet written when the reader is slow, in bytes; what comes on top is dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;

const STANDARD_OUTPUT = 1;

/** Time at the end of the process for what is unwritten, in milliseconds. */
const LAST_WORDS_MS = 500;

/** How often it is looked whether that is done, in milliseconds. */
const LOOK_MS = 10;

/** Lines are written together that come within this time, in milliseconds, or that have so many characters. */
const GATHERING_MS = 50;
const MAX_GATHERED_LENGTH = 16_384;

/** Shortest time between two reports of losses while the reader stays too slow, in milliseconds. */
const REPORT_AGAIN_AFTER_MS = 60_000;

/**
 * The standard output, written in the background: a reader that is slow, or does not read at all, does not hold up
 * the service. What it does not take in time is dropped, line by line, and counted. What is unwritten at the end of
 * the process is written then, if that can be done soon.
 *
 * Lines are gathered for a moment: to wake a thread for each costs more than all else of it. A process that is killed
 * takes with it what it has gathered.
 *
 * A pipe is opened anew, as a file of our own whose writes do not block. Those of the one that we were given do not,
 * either, but that is shared with all who have it, and any of them may change it: Node does at its end. A thread that
 * hangs in a write would keep the process from ending, since Node waits for it.
 *
 * Not covered: sockets, which cannot be opened anew (systemd's journal is one), and systems without `/proc`. There
 * `settle` returns that a write hangs. Nor a terminal that somebody has stopped by ^S, nor what was taken for a reader
 * who is gone then, which is not counted.
 */
export class LogOutput {
  readonly #output: ReturnType<typeof pino.destination>;
  readonly #losses = { lines: 0, reported: 0, reportedAtMs: 0 };
  /** Whether a write was begun and has not come to its end, good or bad. */
  #isWriting = false;
  /** How often the system has said anything to a write, be it to try again. */
  #replies = 0;
  #isFailing = false;
  #isReaderGone = false;
  #gathered = '';
  #gathering: NodeJS.Timeout | undefined;
  #isFlushing = false;
  #lastWordsUntilMs: number | undefined;

  /** @param report logs how many lines were lost since the last time, as soon as some are taken again */
  constructor(report: (lines: number) => void) {
    const output = pino.destination({
      dest: openStandardOutput(),
      sync: false,
      maxLength: MAX_UNWRITTEN_BYTES,
      retryEAGAIN: () => {
        this.#replies += 1;
        return !this.#isFlushing || performance.now() < (this.#lastWordsUntilMs ?? 0);
      },
    });
    this.#output = output;
    output.on('drop', () => this.#lose());
    // What could not be written is tried again with the next line.
    output.on('error', (error: NodeJS.ErrnoException) => {
      this.#replies += 1;
      this.#isWriting = false;
      this.#isFailing = true;
      this.#isReaderGone ||= error.code === 'EPIPE'; // pino writes nothing from then on
    });
    output.on('write', () => {
      this.#replies += 1;
      this.#isFailing = false;
      const { lines, reported, reportedAtMs } = this.#losses;
      const isDue = performance.now() - reportedAtMs > REPORT_AGAIN_AFTER_MS;
      if (lines > reported && isDue) this.#report(report);
    });
    output.on('drain', () => {
      this.#isWriting = false;
      if (this.#losses.lines > this.#losses.reported) this.#report(report);
    });
    this.#boundLastFlush();
  }

  get linesLost(): number {
    return this.#losses.lines;
  }

  write(line: string): void {
    if (this.#isReaderGone) {
      this.#lose();
      return;
    }
    // While a write is under way, what comes is written with the next one.
    if (this.#isWriting) {
      this.#output.write(line);
      return;
    }
    this.#gathered += line;
    if (this.#gathered.length >= MAX_GATHERED_LENGTH) this.#writeGathered();
    else this.#gathering ??= setTimeout(() => this.#writeGathered(), GATHERING_MS).unref();
  }

  /**
   * Waits until all is written, or cannot be for now, but not for long.
   *
   * @returns whether the process can end: not so while a write hangs, which Node would wait for
   */
  async settle(): Promise<boolean> {
    this.#writeGathered();
    const repliesBefore = this.#replies;
    const untilMs = performance.now() + LAST_WORDS_MS;
    this.#lastWordsUntilMs = untilMs;
    while (this.#isWriting && performance.now() < untilMs) await wait(LOOK_MS);
    return !this.#isWriting || this.#replies > repliesBefore;
  }

  #writeGathered(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const lines = this.#gathered;
    if (lines === '') return;
    this.#gathered = '';
    this.#isWriting = true;
    this.#output.write(lines);
  }

  #lose(): void {
    const losses = this.#losses;
    // Reported at once when the reader has taken all, else after some time.
    if (losses.lines === losses.reported) losses.reportedAtMs = performance.now();
    losses.lines += 1;
  }

  #report(report: (lines: number) => void): void {
    const { lines, reported } = this.#losses;
    Object.assign(this.#losses, { reported: lines, reportedAtMs: performance.now() });
    report(lines - reported);
  }

  /** pino's own would try for ever at the end, also where a disk is full, and take a failure for the end of all. */
  #boundLastFlush(): void {
    const output = this.#output;
    const flushSync = output.flushSync.bind(output);
    output.flushSync = () => {
      this.#writeGathered();
      if (this.#isFailing) return;
      this.#lastWordsUntilMs ??= performance.now() + LAST_WORDS_MS;
      this.#isFlushing = true;
      try {
        flushSync();
      } catch {
        // There is nowhere left to report it.
      } finally {
        this.#isFlushing = false;
      }
    };
  }
}

function openStandardOutput(): number {
  try {
    if (!fstatSync(STANDARD_OUTPUT).isFIFO()) return STANDARD_OUTPUT;
    const { O_WRONLY, O_NONBLOCK } = constants;
    return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, O_WRONLY | O_NONBLOCK);
  } catch {
    return STANDARD_OUTPUT; // no /proc, not ours to open, or its reader has gone
  }
}
