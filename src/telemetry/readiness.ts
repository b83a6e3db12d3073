import type { OriginState } from '../pipeline/originals/origin-health.ts';
import type { Lane } from '../pipeline/ports.ts';

/** Whether requests should come here, and what is in the way, or short of what it should be. */
export interface Readiness {
  /** `degraded`: they should, but not all of them can be served. */
  readonly status: 'ready' | 'degraded' | 'not ready';
  readonly reasons: readonly string[];
}

/** Connections and requests of the media listener, at this moment; and sums since the start. */
export interface ConnectionCounters {
  readonly connections: number;
  readonly maxConnections: number;
  /** Requests under way, and how many there may be; more are refused, hits included. */
  readonly requests: number;
  readonly maxRequests: number;
  /** Clients that were cut off: too slow to take their responses; evicted for new ones; too many, all busy. */
  readonly slowReaders: number;
  readonly evicted: number;
  readonly turnedAway: number;
}

/** State of the parts that readiness is judged by. */
export interface Vitals {
  readonly isClosing: boolean;
  readonly readyWorkers: Readonly<Record<Lane, number>>;
  readonly origin: { readonly state: OriginState; readonly hasResponded: boolean };
  /** Whether what tells that the storage is the one that is meant is not there. */
  readonly isMarkerMissing: boolean;
  readonly isStoreFailing: boolean;
  /** Why renderings are not stored at present, if they are not. */
  readonly storeShortcoming: string | undefined;
  readonly crowdedLanes: readonly Lane[];
  /** Whether as many uploads are under way as may be. */
  readonly areUploadsFull: boolean;
  readonly connections: ConnectionCounters;
}

/**
 * Judges whether requests should come here.
 *
 * A replica is taken out of service by what no other replica shares and every request suffers from: that it
 * stops, has no worker, can take no more requests, has no originals (a disk that is not mounted), or has not reached
 * the origin since its start (a wrong setting, or a network that is not there yet). What all replicas share, or what
 * only new renders suffer from, does not: if the origin fails, or renders queue, to take out one after another would
 * end the hits as well, which are nine of ten requests. It is a reason all the same.
 */
export function judgeReadiness(vitals: Vitals): Readiness {
  const { readyWorkers, origin, connections } = vitals;
  const obstacles = [
    vitals.isClosing && 'draining',
    readyWorkers.light === 0 && 'no worker is ready',
    !origin.hasResponded &&
      (origin.state === 'unknown'
        ? 'the origin has not answered yet'
        : 'the origin has failed since the start'),
    vitals.isMarkerMissing && 'the file STORAGE_MARKER is missing: another folder is in its place',
    connections.requests >= connections.maxRequests &&
      'as many requests as there may be are under way',
  ].filter((reason) => reason !== false);
  const shortcomings = [
    origin.state === 'failing' && origin.hasResponded && 'the origin fails; what is kept is served',
    vitals.isStoreFailing && 'the store of renderings fails; they are made anew',
    vitals.storeShortcoming !== undefined && vitals.storeShortcoming,
    readyWorkers.heavy === 0 && 'no worker for heavy renders is ready',
    vitals.areUploadsFull && 'uploads are turned away; media are served',
    ...vitals.crowdedLanes.map((lane) => `${lane} renders are turned away; hits are served`),
  ].filter((reason) => reason !== false);
  const reasons = [...obstacles, ...shortcomings];
  if (obstacles.length > 0) return { status: 'not ready', reasons };
  return { status: reasons.length > 0 ? 'degraded' : 'ready', reasons };
}
