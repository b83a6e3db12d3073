import type { Clock } from '../../pipeline/ports.ts';
import type { Connection, Phase } from './connection.ts';

/** Connections by their phases, in each of them in the order in which they have come to it. */
export class ConnectionPhases {
  readonly #clock: Clock;
  readonly #phases: Readonly<Record<Phase, Set<Connection>>> = {
    silent: new Set(),
    busy: new Set(),
    idle: new Set(),
    leaving: new Set(),
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes in a connection, in the phase that it is in. */
  add(connection: Connection): void {
    this.#phases[connection.phase].add(connection);
  }

  /** Puts a connection into a phase, from this moment on. */
  move(connection: Connection, phase: Phase): void {
    this.remove(connection);
    connection.phase = phase;
    connection.sinceMs = this.#clock.nowMs();
    this.add(connection);
  }

  /** Forgets a connection. */
  remove(connection: Connection): void {
    this.#phases[connection.phase].delete(connection);
  }

  /** All in a phase, the one that is in it for longest first. */
  in(phase: Phase): Iterable<Connection> {
    return this.#phases[phase];
  }

  /** Those that are in a phase since a moment, or longer, in milliseconds of the clock. */
  *olderThan(phase: Phase, sinceMs: number): Generator<Connection> {
    for (const connection of this.#phases[phase]) {
      if (connection.sinceMs > sinceMs) return;
      yield connection;
    }
  }
}
