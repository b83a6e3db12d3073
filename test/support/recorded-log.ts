import type { Log } from '../../src/pipeline/ports.ts';

interface LogEntry {
  readonly level: 'info' | 'warn' | 'error';
  readonly details: object;
  readonly message: string;
}

export class RecordedLog implements Log {
  readonly entries: LogEntry[] = [];
  readonly info = this.#keep('info');
  readonly warn = this.#keep('warn');
  readonly error = this.#keep('error');

  #keep(level: LogEntry['level']) {
    return (details: object, message: string): void =>
      void this.entries.push({ level, details, message });
  }

  count(message: string): number {
    return this.entries.filter((entry) => entry.message === message).length;
  }

  /** Details of the entries at level error, which page an operator. */
  get errors(): readonly object[] {
    return this.entries.flatMap(({ level, details }) => (level === 'error' ? [details] : []));
  }
}
