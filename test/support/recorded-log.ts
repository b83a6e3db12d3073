import type { Log } from '../../src/pipeline/ports.ts';

/** A line that a part of the service has logged. */
export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error';
  readonly details: object;
  readonly message: string;
}

/** A log that is kept, for tests. */
export class RecordedLog implements Log {
  readonly entries: LogEntry[] = [];

  info(details: object, message: string): void {
    this.entries.push({ level: 'info', details, message });
  }

  warn(details: object, message: string): void {
    this.entries.push({ level: 'warn', details, message });
  }

  error(details: object, message: string): void {
    this.entries.push({ level: 'error', details, message });
  }

  /** How often something was logged. */
  count(message: string): number {
    return this.entries.filter((entry) => entry.message === message).length;
  }

  /** What an operator would be woken for. */
  get errors(): readonly object[] {
    return this.entries.flatMap(({ level, details }) => (level === 'error' ? [details] : []));
  }
}
