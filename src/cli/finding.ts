import type { Writable } from 'node:stream';
import { writeLine } from './command.ts';

/** What a check has found: one line. */
export interface Finding {
  readonly isFault: boolean;
  /** What was checked, in a word or two. */
  readonly subject: string;
  /** What is so; of a fault, what follows from it and what to do. */
  readonly text: string;
}

/** All is well with something. */
export function ok(subject: string, text: string): Finding {
  return { isFault: false, subject, text };
}

/** Something is wrong. */
export function fault(subject: string, text: string): Finding {
  return { isFault: true, subject, text };
}

/** Writes a finding: `ok     workers: …` or `FAULT  workers: …`. */
export function writeFinding(stream: Writable, { isFault, subject, text }: Finding): void {
  writeLine(stream, `${isFault ? 'FAULT' : 'ok   '}  ${subject}: ${text}`);
}
