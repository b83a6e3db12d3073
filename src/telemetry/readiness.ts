import type { BlockList } from '../pipeline/blocks/block-list.ts';
import type { CdnPurger } from '../pipeline/cdn/cdn-purger.ts';
import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Lane, ResultStore } from '../pipeline/ports.ts';
import type { UploadService } from '../pipeline/uploads/upload-service.ts';

/** Whether requests should come here, with the reasons why not, or why not all of them are served. */
export interface Readiness {
  /** `degraded`: requests should come, but not all of them can be served. */
  readonly status: 'ready' | 'degraded' | 'not ready';
  readonly reasons: readonly string[];
}

/** Connections and requests of the media listener now, and sums since the start. */
export interface ConnectionCounters {
  readonly connections: number;
  readonly maxConnections: number;
  /** Requests under way, and the most there may be; more are rejected, hits included. */
  readonly requests: number;
  readonly maxRequests: number;
  /** Connections cut: of slow readers; evicted for new ones; new ones while all were busy. */
  readonly slowReaders: number;
  readonly evicted: number;
  readonly turnedAway: number;
}

interface ObservedWorkers {
  readyProcessIdsOf(lane: Lane): readonly number[];
  rssBytesOf(lane: Lane): number;
  expectedWorkers(lane: Lane): number;
  readonly slots: Readonly<Record<Lane, readonly unknown[]>>;
  readonly counters: Readonly<Record<'restarts' | 'kills' | 'recycles', number>>;
}

/** Parts of the service by which it is measured and its readiness judged. */
export interface ServiceState {
  readonly pipeline: MediaPipeline;
  readonly workers: ObservedWorkers;
  readonly originHealth: OriginHealth;
  /** Check of `STORAGE_MARKER`; `undefined` if it is not set. */
  readonly marker: { readonly isMissing: boolean; lookSoon(): void } | undefined;
  readonly resultStore: ResultStore | undefined;
  /** `undefined`: nothing can be blocked. */
  readonly blocks:
    | Pick<BlockList, 'isUnreadable' | 'ageSeconds' | 'generation' | 'index'>
    | undefined;
  /** `undefined`: there are no uploads. */
  readonly uploads: Pick<UploadService, 'usage' | 'isFull'> | undefined;
  /** `undefined`: there is no CDN in front that takes purges. */
  readonly cdn: Pick<CdnPurger, 'usage'> | undefined;
  readonly countConnections: () => ConnectionCounters;
  readonly isClosing: () => boolean;
}

/**
 * Judges whether requests should come here; probes a storage that was silent for a while, for the next time.
 *
 * A replica is not ready if it alone has a fault that every request suffers from. A fault that all replicas share, or
 * that only new renders suffer from, leaves the replica ready: taking out one replica after another would end the hits
 * as well, which are nine of ten requests.
 */
export function checkReadiness(state: ServiceState): Readiness {
  const { pipeline, workers, originHealth, marker, uploads } = state;
  originHealth.probe(pipeline.storage);
  marker?.lookSoon();
  const connections = state.countConnections();
  const isReady = (lane: Lane): boolean => workers.readyProcessIdsOf(lane).length > 0;
  const obstacles = [
    state.isClosing() && 'draining',
    !isReady('light') && 'no worker is ready',
    !originHealth.hasResponded &&
      (originHealth.state === 'unknown'
        ? 'the origin has not answered yet'
        : 'the origin has failed since the start'),
    marker?.isMissing && 'the file STORAGE_MARKER is missing: another folder is in its place',
    connections.requests >= connections.maxRequests &&
      'as many requests as there may be are under way',
  ].filter((reason) => typeof reason === 'string');
  const shortcomings = [
    originHealth.state === 'failing' &&
      originHealth.hasResponded &&
      'the origin fails; what is kept is served',
    pipeline.store?.isFailing && 'the store of renderings fails; they are made anew',
    workers.slots.heavy.length > 0 && !isReady('heavy') && 'no worker for heavy renders is ready',
    state.blocks?.isUnreadable && 'the list of blocks cannot be read; the last one holds',
    uploads?.isFull && 'uploads are rejected; media are served',
    ...pipeline.admission.crowded.map((lane) => `${lane} renders are rejected; hits are served`),
  ].filter((reason) => typeof reason === 'string');
  const reasons = [...obstacles, ...shortcomings];
  if (obstacles.length > 0) return { status: 'not ready', reasons };
  return { status: reasons.length > 0 ? 'degraded' : 'ready', reasons };
}
