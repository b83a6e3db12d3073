import type { BlockList } from '../pipeline/blocks/block-list.ts';
import type { CdnPurger } from '../pipeline/cdn/cdn-purger.ts';
import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Lane, ResultStore } from '../pipeline/ports.ts';
import type { UploadService } from '../pipeline/uploads/upload-service.ts';

export interface Readiness {
  /** `degraded`: route requests here, although some fail. */
  readonly status: 'ready' | 'degraded' | 'not ready';
  readonly reasons: readonly string[];
}

/** Present connections and requests of the media listener, and sums since the start. */
interface ConnectionCounters {
  readonly connections: number;
  readonly maxConnections: number;
  readonly requests: number;
  readonly maxRequests: number;
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

/** Services that metrics and readiness observe; `undefined` for disabled ones. */
export interface ServiceState {
  readonly pipeline: MediaPipeline;
  readonly workers: ObservedWorkers;
  readonly originHealth: OriginHealth;
  readonly marker: { readonly isMissing: boolean; checkInBackground(): void } | undefined;
  readonly resultStore: ResultStore | undefined;
  readonly blocks: BlockList | undefined;
  readonly uploads: Pick<UploadService, 'usage' | 'isFull'> | undefined;
  readonly cdn: CdnPurger | undefined;
  readonly countConnections: () => ConnectionCounters;
  readonly isClosing: () => boolean;
}

/**
 * Decides whether to route requests here. A replica is not ready if a failure affects all of its requests and no other
 * replica. Failures of all replicas, or only of new renders, leave it ready: otherwise all replicas would drop out,
 * along with their hits, which are nine out of ten requests.
 */
export function checkReadiness(state: ServiceState): Readiness {
  const { pipeline, workers, originHealth, marker, uploads } = state;
  const connections = state.countConnections();
  const isReady = (lane: Lane): boolean => workers.readyProcessIdsOf(lane).length > 0;
  const blockers = [
    state.isClosing() && 'draining',
    !isReady('light') && 'no worker is ready',
    !originHealth.hasResponded &&
      (originHealth.state === 'unknown'
        ? 'the origin has not responded yet'
        : 'the origin has failed since the start'),
    marker?.isMissing && 'the file STORAGE_MARKER is missing: another directory is mounted',
    connections.requests >= connections.maxRequests &&
      'the maximum number of requests is in flight',
  ].filter((reason) => typeof reason === 'string');
  const degradations = [
    originHealth.state === 'failing' &&
      originHealth.hasResponded &&
      'the origin fails; cached media are served',
    pipeline.store?.isFailing && 'the result store fails; media are rendered again',
    workers.slots.heavy.length > 0 && !isReady('heavy') && 'no worker for heavy renders is ready',
    state.blocks?.isUnreadable &&
      'the list of blocks cannot be read; the last version stays in effect',
    uploads?.isFull && 'uploads are rejected; media are served',
    ...pipeline.admission.overloaded.map((lane) => `${lane} renders are rejected; hits are served`),
  ].filter((reason) => typeof reason === 'string');
  const reasons = [...blockers, ...degradations];
  if (blockers.length > 0) return { status: 'not ready', reasons };
  return { status: reasons.length > 0 ? 'degraded' : 'ready', reasons };
}

/** Probes a silent storage in the background, for the next `checkReadiness`. */
export function probeStorage({ pipeline, originHealth, marker }: ServiceState): void {
  originHealth.probe(pipeline.storage);
  marker?.checkInBackground();
}
