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

/** All is well with something. */
export function ok(subject: string, text: string): Finding {
  return { kind: 'ok', subject, text };
}

/** Something may be wrong: it is shown, and is no fault. */
export function warning(subject: string, text: string): Finding {
  return { kind: 'warning', subject, text };
}

/** Something is wrong. */
export function fault(subject: string, text: string): Finding {
  return { kind: 'fault', subject, text };
}

const words = { ok: 'ok   ', warning: 'WARN ', fault: 'FAULT' } as const;

/** Writes a finding: `ok     workers: …` or `FAULT  workers: …`. */
export function writeFinding(stream: Writable, { kind, subject, text }: Finding): void {
  writeLine(stream, `${words[kind]}  ${subject}: ${text}`);
}
