import type { Log, StoreUsage } from '../../pipeline/ports.ts';
import { clearFolder } from './eviction.ts';
import { cutByAge, type FolderSurvey, surveyFolder } from './folder-scan.ts';

/** Parts of the bound: above the first a clearing begins, the second is where it ends. */
const HIGH_PART = 0.95;
const LOW_PART = 0.85;

/**
 * Parts of the bound that may be written unseen by a survey, which sees what other processes write:
 * after the first the next one begins, after the second nothing is written before it has ended. This is
 * what each process may add to what another one believes is there, and no more.
 */
const SURVEY_AFTER_PART = 0.05;
const UNSURVEYED_PART = 0.1;

/** Time after a survey or clearing that failed or freed too little, before the next, in milliseconds. */
const RETRY_AFTER_MS = 60_000;

/** What is bounded, and by how much. */
export interface FolderBoundOptions {
  /** Whose regular files and folders count; all below it may be removed. */
  readonly folder: string;
  /** Of disk, in bytes, counted in whole blocks. */
  readonly maxBytes: number;
  readonly log: Log;
  /** `false`: nothing is ever counted or removed; 5 % of the bound can be written. */
  readonly isUpkept?: boolean | undefined;
  /** Runs before each survey; what it throws ends the survey. */
  readonly beforeSurvey: (signal: AbortSignal) => Promise<void>;
}

/**
 * Keeps a folder of files below a bound, by removing those that were not touched for longest.
 *
 * It holds no list: it knows a sum. Surveys in the background count it anew, at the start and after each
 * 5 % of the bound that was written; in between the sum follows the writes. Until the first survey is
 * done, the folder is taken for full to 95 %, so that 5 % can be written. Above 95 %, a second walk
 * removes by what the survey found, the oldest first, down to 85 %. What would go above 100 % gets no
 * room.
 *
 * So a process alone never leads the folder above its bound. Of several that share it, each sees the
 * writes of the others with its next survey: together they may go beyond by 10 % for each further one.
 * When two of them clear at the same time, they remove the same files, but for some of one age class.
 *
 * Not covered: entries that Node cannot name (not UTF-8) and those in folders that must not be read.
 */
export class FolderBound {
  readonly #options: FolderBoundOptions;
  readonly #closing = new AbortController();
  /** What is taken for there, with what is being written. */
  #heldBytes: number;
  /** Part of it that is being written: a survey may or may not see it. */
  #pendingBytes = 0;
  /** What was written since the last survey that has ended began, and what is being written. */
  #grownBytes = 0;
  #isWorking = false;
  #isCounted = false;
  #evictions = 0;
  #restUntilMs = 0;

  /** Begins the first survey, unless the folder is left to others. */
  constructor(options: FolderBoundOptions) {
    this.#options = options;
    this.#heldBytes = HIGH_PART * options.maxBytes;
    this.#wake();
  }

  /** How full the folder is; `undefined` before it was counted for the first time. */
  get usage(): StoreUsage | undefined {
    if (!this.#isCounted) return undefined;
    const { maxBytes } = this.#options;
    return { heldBytes: this.#heldBytes, maxBytes, evictions: this.#evictions };
  }

  /**
   * Reserves room for something that will be written; `settle` must follow.
   *
   * @returns whether there is room
   */
  tryReserve(costBytes: number): boolean {
    const { maxBytes } = this.#options;
    const hasRoom =
      this.#heldBytes + costBytes <= maxBytes &&
      this.#grownBytes + costBytes <= UNSURVEYED_PART * maxBytes;
    if (hasRoom) {
      this.#heldBytes += costBytes;
      this.#pendingBytes += costBytes;
      this.#grownBytes += costBytes;
    }
    if (!hasRoom || this.#isSurveyDue()) this.#wake();
    return hasRoom;
  }

  /** Turns what was reserved into what has been written: more, less or nothing. */
  settle(reservedBytes: number, writtenBytes: number): void {
    this.#pendingBytes -= reservedBytes;
    this.#heldBytes += writtenBytes - reservedBytes;
    this.#grownBytes += writtenBytes - reservedBytes;
  }

  /** Takes note of something that was removed. */
  release(costBytes: number): void {
    this.#heldBytes = Math.max(0, this.#heldBytes - costBytes);
  }

  /** Ends the work in the background, at its next step. */
  close(): void {
    this.#closing.abort();
  }

  #isSurveyDue(): boolean {
    return this.#isHigh() || this.#grownBytes > SURVEY_AFTER_PART * this.#options.maxBytes;
  }

  #isHigh(): boolean {
    return this.#heldBytes > HIGH_PART * this.#options.maxBytes;
  }

  /** Begins to work, unless it does, or has to wait, or is closed. */
  #wake(): void {
    if (this.#isWorking || performance.now() < this.#restUntilMs) return;
    if (this.#closing.signal.aborted || this.#options.isUpkept === false) return;
    this.#isWorking = true;
    void this.#work().finally(() => {
      this.#isWorking = false;
    });
  }

  async #work(): Promise<void> {
    const { log } = this.#options;
    try {
      do {
        const survey = await this.#survey();
        if (this.#isHigh() && !(await this.#clear(survey))) this.#rest();
      } while (this.#isSurveyDue() && performance.now() >= this.#restUntilMs);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#rest();
      log.error({ err: error }, 'the folder of the result store cannot be counted');
    }
  }

  #rest(): void {
    this.#restUntilMs = performance.now() + RETRY_AFTER_MS;
  }

  async #survey(): Promise<FolderSurvey> {
    const { folder, log, beforeSurvey } = this.#options;
    const startedMs = performance.now();
    await beforeSurvey(this.#closing.signal);
    const seenBytes = this.#grownBytes - this.#pendingBytes;
    const survey = await surveyFolder(folder, this.#closing.signal, (path, error) =>
      log.warn({ err: error, path }, 'a folder of the result store cannot be read'),
    );
    // The walk may have seen what was written since it began, or not; it is added: better too much.
    this.#grownBytes -= seenBytes;
    this.#heldBytes = survey.costBytes + this.#grownBytes;
    this.#isCounted = true;
    const { files, costBytes } = survey;
    const durationMs = Math.round(performance.now() - startedMs);
    log.info({ files, costBytes, durationMs }, 'result store counted');
    return survey;
  }

  /**
   * Removes the oldest files, as many as bring the sum to the lower part; writes go on meanwhile.
   *
   * @returns `false` if half of it or more must not be removed: the next time will be no better. What
   *   another process has removed meanwhile is no such reason; the next survey will tell.
   */
  async #clear(survey: FolderSurvey): Promise<boolean> {
    const { folder, maxBytes, log } = this.#options;
    const startedMs = performance.now();
    const excessBytes = this.#heldBytes - LOW_PART * maxBytes;
    const cut = cutByAge(survey, excessBytes);
    let freedBytes = 0;
    const { files, refused } = await clearFolder(folder, survey.atMs, cut, {
      signal: this.#closing.signal,
      onFreed: (costBytes) => {
        freedBytes += costBytes;
        this.release(costBytes);
      },
    });
    this.#evictions += files;
    if (refused.count > 0) {
      const { count, first } = refused;
      log.warn({ err: first, count }, 'files of the result store cannot be removed');
    }
    const durationMs = Math.round(performance.now() - startedMs);
    log.info({ files, freedBytes, durationMs }, 'result store cleared');
    return refused.count === 0 || freedBytes > excessBytes / 2;
  }
}
