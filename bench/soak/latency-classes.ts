import type { Visit } from './visit.ts';

/** A sort of answers whose times can be compared. */
export interface LatencyClass {
  readonly name: string;
  readonly colour: string;
  /** Its time in milliseconds, if a visit is of this sort. */
  readonly read: (visit: Visit) => number | undefined;
}

/** Sorts of answers; what went wrong, or was left, is of none. */
export const LATENCY_CLASSES: readonly LatencyClass[] = [
  {
    name: 'hit',
    colour: '#1b7837',
    read: ({ ending, isHit, totalMs }) => (ending === 'complete' && isHit ? totalMs : undefined),
  },
  {
    name: 'light render',
    colour: '#2166ac',
    read: (visit) =>
      isRendered(visit) && (visit.purpose === 'new still' || visit.purpose === 'popular image')
        ? visit.totalMs
        : undefined,
  },
  {
    name: 'animation',
    colour: '#b2182b',
    read: (visit) =>
      isRendered(visit) && visit.purpose === 'new animation' ? visit.totalMs : undefined,
  },
  {
    // To the first byte: what follows is as fast as the reader.
    name: 'file, first byte',
    colour: '#8c510a',
    read: ({ purpose, status, headMs }) =>
      (purpose === 'file' && status === 200) || (purpose === 'range' && status === 206)
        ? headMs
        : undefined,
  },
];

function isRendered({ ending, status, isHit }: Visit): boolean {
  return ending === 'complete' && status === 200 && !isHit;
}
