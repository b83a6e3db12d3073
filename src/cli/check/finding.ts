import type { Writable } from 'node:stream';
import { writeLine } from '../command.ts';

export interface Finding {
  readonly kind: 'ok' | 'warning' | 'fault';
  readonly subject: string;
  readonly text: string;
}

const findingOf =
  (kind: Finding['kind']) =>
  (subject: string, text: string): Finding => ({ kind, subject, text });

export const ok = findingOf('ok');

export const warning = findingOf('warning');

export const fault = findingOf('fault');

const words = { ok: 'ok   ', warning: 'WARN ', fault: 'FAULT' } as const;

/** Writes `ok     workers: …` or `FAULT  workers: …`. */
export function writeFinding(stream: Writable, { kind, subject, text }: Finding): void {
  writeLine(stream, `${words[kind]}  ${subject}: ${text}`);
}
