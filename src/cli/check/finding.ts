import type { Writable } from 'node:stream';
import { writeLine } from '../command.ts';

/** Result of a check: one line. */
export interface Finding {
  readonly kind: 'ok' | 'warning' | 'fault';
  /** Subject of the check, in a word or two. */
  readonly subject: string;
  /** The finding; for a fault also its consequence and the remedy. */
  readonly text: string;
}

const findingOf =
  (kind: Finding['kind']) =>
  (subject: string, text: string): Finding => ({ kind, subject, text });

export const ok = findingOf('ok');

/** Reports a possible problem, which is shown but is not a fault. */
export const warning = findingOf('warning');

export const fault = findingOf('fault');

const words = { ok: 'ok   ', warning: 'WARN ', fault: 'FAULT' } as const;

/** Writes a finding: `ok     workers: …` or `FAULT  workers: …`. */
export function writeFinding(stream: Writable, { kind, subject, text }: Finding): void {
  writeLine(stream, `${words[kind]}  ${subject}: ${text}`);
}
