import type { Question } from './exchange.ts';

/** Why a request is made; the rows of the report. */
export type Purpose =
  | 'popular image'
  | 'new still'
  | 'new animation'
  | 'file'
  | 'range'
  | 'condition'
  | 'head'
  | 'leaves in mid-render'
  | 'leaves in mid-body'
  | 'slow reader'
  | 'hostile'
  | 'unknown'
  | 'bad request'
  | 'default avatar';

/** A request of the load, and what a right response looks like. */
export interface Shot {
  readonly question: Question;
  /** Whether there is, or might be, an original behind it. */
  readonly needsOrigin: boolean;
  /** Statuses that are right while the origin is well and nothing is overloaded. */
  readonly expected: readonly number[];
  /** What it may cost; a refusal under overload is right for renders alone. */
  readonly render: 'none' | 'light' | 'heavy';
  /** The body of a 200 or 206, where it is known beforehand. */
  readonly readBody?: (() => Buffer) | undefined;
}

/** One of the mix. */
export interface PurposedShot extends Shot {
  readonly purpose: Purpose;
}
