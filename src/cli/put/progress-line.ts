import { formatByteSize } from '../byte-size.ts';
import type { Terminal } from '../command.ts';

/** Time before progress is shown, in milliseconds. */
const QUIET_MS = 500;

/** Shortest interval between updates, in milliseconds. */
const REFRESH_MS = 100;

/** Control sequence that returns to the first column and clears the line (ECMA-48, EL). */
const CLEAR_LINE = '\r\u001b[K';

/** A line of progress on a terminal; shows nothing without a terminal. */
export class ProgressLine {
  readonly #terminal: Terminal;
  readonly #totalBytes: number | undefined;
  readonly #startedMs = performance.now();
  #shownMs = this.#startedMs + QUIET_MS - REFRESH_MS;
  #isShown = false;

  /** @param totalBytes `undefined` if unknown */
  constructor(terminal: Terminal, totalBytes: number | undefined) {
    this.#terminal = terminal;
    this.#totalBytes = totalBytes;
  }

  update(doneBytes: number): void {
    const nowMs = performance.now();
    if (this.#terminal.columns === undefined || nowMs - this.#shownMs < REFRESH_MS) return;
    this.#shownMs = nowMs;
    this.#isShown = true;
    const text = this.#format(doneBytes, nowMs - this.#startedMs);
    this.#terminal.stderr.write(CLEAR_LINE + text.slice(0, this.#terminal.columns - 1));
  }

  /** Clears the line. */
  clear(): void {
    if (this.#isShown) this.#terminal.stderr.write(CLEAR_LINE);
    this.#isShown = false;
  }

  #format(doneBytes: number, elapsedMs: number): string {
    const done = formatByteSize(doneBytes);
    const speed = `${formatByteSize(doneBytes / (elapsedMs / 1000))}/s`;
    if (this.#totalBytes === undefined) return `${done}, ${speed}`;
    const percent = Math.floor((doneBytes / this.#totalBytes) * 100);
    return `${String(percent).padStart(3)} %  ${done} of ${formatByteSize(this.#totalBytes)}, ${speed}`;
  }
}
