import type { Writable } from 'node:stream';
import { writeLine } from '../command.ts';

/** What a check has found: one line. */
export interface Finding {
  readonly kind: 'ok' | 'warning' | 'fault';
  /** What was checked, in a word or two. */
  readonly subject: string;
  /** What is so; of a fault, what follows from it and what to do. */
  readonly text: string;
}

const findingOf =
  (kind: Finding['kind']) =>
  (subject: string, text: string): Finding => ({ kind, subject, text });

/** All is well with something. */
export const ok = findingOf('ok');

/** Something may be wrong: it is shown, and is no fault. */
export const warning = findingOf('warning');

/** Something is wrong. */
export const fault = findingOf('fault');

const words = { ok: 'ok   ', warning: 'WARN ', fault: 'FAULT' } as const;

/** Writes a finding: `ok     workers: …` or `FAULT  workers: …`. */
export function writeFinding(stream: Writable, { kind, subject, text }: Finding): void {
  writeLine(stream, `${words[kind]}  ${subject}: ${text}`);
}
