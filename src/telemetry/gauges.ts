import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/image-formats.ts';
import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Lane, Renderer, ResultStore } from '../pipeline/ports.ts';
import type { UploadUsage } from '../pipeline/uploads/upload-service.ts';
import type { Reading } from './prometheus-meter.ts';
import type { ConnectionCounters, Readiness } from './readiness.ts';

/** The pool of workers, as far as it is measured. */
interface WorkerGauges {
  readyProcessIdsOf(lane: Lane): readonly number[];
  rssBytesOf(lane: Lane): number;
  wantedOf(lane: Lane): number;
  readonly slots: Renderer['slots'];
  readonly counters: Readonly<Record<'restarts' | 'kills' | 'recycles', number>>;
}

/** Sources that gauges are read from. */
interface ReadingSources {
  readonly config: Config;
  readonly pipeline: MediaPipeline;
  readonly resultStore: ResultStore | undefined;
  readonly workers: WorkerGauges;
  readonly originHealth: OriginHealth;
  readonly countConnections: () => ConnectionCounters;
  readonly judge: () => Readiness;
  readonly countLostLines: () => number;
  /** `undefined`: there are no uploads. */
  readonly countUploads: (() => UploadUsage) | undefined;
}

const perLane = (read: (lane: Lane) => number) => ({ light: read('light'), heavy: read('heavy') });

/** Lists what operators see besides counters: sizes, lengths, states. A row each. */
export function listGauges(sources: ReadingSources): readonly Reading[] {
  const { config, pipeline, resultStore, workers, countConnections, countUploads } = sources;
  const { admission, originReads, originStreams, originalsBudget, rates, store } = pipeline;
  const { results, originals } = pipeline.memories;
  // Zeros where there are no uploads: a metric that comes and goes is none.
  const ofUploads = (member: keyof UploadUsage) => () => countUploads?.()[member] ?? 0;
  return [
    {
      ...gauge(
        'darkroom_build_info',
        'Always 1; its labels tell which release runs, and which transforms.',
        () => 1,
      ),
      labels: {
        pipeline_release: releaseWithEffort(config.renderLimits.webpEffort),
        commit: '',
        ...config.release,
      },
    },
    gauge('darkroom_ready', 'Whether requests should come here, as /readyz says: 1 or 0.', () =>
      Number(sources.judge().status !== 'not ready'),
    ),
    gauge(
      'darkroom_origin_reachable',
      'Whether the origin has answered lately, or nothing is known to the contrary: 1 or 0.',
      () => Number(sources.originHealth.state !== 'failing'),
    ),
    gauge(
      'darkroom_log_lines_lost_total',
      'Lines of the log that were dropped, because its reader was too slow.',
      sources.countLostLines,
    ),
    gauge(
      'darkroom_queue_length',
      'Renders that wait for a CPU slot.',
      () => perLane((lane) => admission.waitingIn(lane)),
      'lane',
    ),
    gauge(
      'darkroom_slots',
      'CPU slots there are.',
      () => perLane((lane) => workers.slots[lane].length),
      'lane',
    ),
    gauge(
      'darkroom_slots_held',
      'CPU slots that are held by a render.',
      () => perLane((lane) => admission.heldSlotsOf(lane)),
      'lane',
    ),
    gauge(
      'darkroom_workers',
      'Render processes there should be now; heavy ones start when they are needed.',
      () => perLane((lane) => workers.wantedOf(lane)),
      'lane',
    ),
    gauge(
      'darkroom_workers_ready',
      'Render processes that are idle or at work.',
      () => perLane((lane) => workers.readyProcessIdsOf(lane).length),
      'lane',
    ),
    gauge(
      'darkroom_worker_resident_memory_bytes',
      'Resident memory of render processes after their last jobs, added up.',
      () => perLane((lane) => workers.rssBytesOf(lane)),
      'lane',
    ),
    gauge(
      'darkroom_worker_restarts_total',
      'Render processes started in place of one that ended or was killed.',
      () => workers.counters.restarts,
    ),
    gauge(
      'darkroom_worker_kills_total',
      'Render processes killed: at a deadline, because nobody waited any more, for breaking the protocol.',
      () => workers.counters.kills,
    ),
    gauge(
      'darkroom_worker_recycles_total',
      'Render processes replaced because they were worn.',
      () => workers.counters.recycles,
    ),
    gauge(
      'darkroom_cache_bytes',
      'What the entries of a cache take; of a store, where it bounds itself.',
      () => ({
        results: results.heldBytes,
        originals: originals.heldBytes,
        store: resultStore?.usage?.()?.heldBytes,
      }),
      'cache',
    ),
    gauge(
      'darkroom_cache_max_bytes',
      'What they may take.',
      () => ({
        results: results.maxBytes,
        originals: originals.maxBytes,
        store: resultStore?.usage?.()?.maxBytes,
      }),
      'cache',
    ),
    gauge(
      'darkroom_cache_entries',
      'Entries of a cache in memory.',
      () => ({ results: results.entries, originals: originals.entries }),
      'cache',
    ),
    gauge(
      'darkroom_cache_evictions_total',
      'Entries that had to go to make room for others.',
      () => ({
        results: results.evictions,
        originals: originals.evictions,
        store: resultStore?.usage?.()?.evictions,
      }),
      'cache',
    ),
    gauge(
      'darkroom_store_writes_total',
      'Renderings that were to be stored, by what became of them; dropped: the store was too slow.',
      () => store && { ...store.writes },
      'outcome',
    ),
    gauge(
      'darkroom_originals_held_bytes',
      'Originals that are being read or rendered, or wait for it.',
      () => originalsBudget.heldBytes,
    ),
    gauge(
      'darkroom_originals_max_bytes',
      'What they may take (ORIGINALS_MEMORY_BYTES).',
      () => originalsBudget.maxBytes,
    ),
    gauge(
      'darkroom_origin_bodies_open',
      'Bodies that the origin is sending, by what is done with them.',
      () => ({ transform: originReads.inside, passthrough: originStreams.inside }),
      'purpose',
    ),
    gauge(
      'darkroom_origin_waiting',
      'Reads that wait for one of these to end.',
      () => ({ transform: originReads.waiting, passthrough: originStreams.waiting }),
      'purpose',
    ),
    gauge(
      'darkroom_rate_clients',
      'Clients whose renders are remembered, to limit them (RATE_LIMIT_REQUESTS).',
      () => rates?.clients ?? 0,
    ),
    gauge(
      'darkroom_connections',
      'Clients that are connected.',
      () => countConnections().connections,
    ),
    gauge('darkroom_max_connections', 'How many may be.', () => countConnections().maxConnections),
    gauge(
      'darkroom_requests_in_flight',
      'Requests that are not answered to the end.',
      () => countConnections().requests,
    ),
    gauge(
      'darkroom_max_requests_in_flight',
      'How many may be; more are turned away.',
      () => countConnections().maxRequests,
    ),
    gauge(
      'darkroom_clients_cut_off_total',
      'Connections cut: of slow readers; of idle ones for the sake of new ones; of new ones for want of room.',
      () => {
        const { slowReaders, evicted, turnedAway } = countConnections();
        return { 'slow reader': slowReaders, evicted, 'turned away': turnedAway };
      },
      'reason',
    ),
    gauge('darkroom_uploads_in_flight', 'Uploads under way.', ofUploads('uploads')),
    gauge(
      'darkroom_max_uploads_in_flight',
      'How many may be; more are turned away.',
      ofUploads('maxUploads'),
    ),
    gauge(
      'darkroom_upload_held_bytes',
      'Memory that uploads hold which have not told their length.',
      ofUploads('heldBytes'),
    ),
    gauge(
      'darkroom_upload_max_held_bytes',
      'What they may hold (RELAY_MEMORY_BYTES).',
      ofUploads('maxHeldBytes'),
    ),
  ];
}

/** Creates a row: a name, its help, and what reads it, by the values of a label if there is one. */
function gauge(name: string, help: string, read: Reading['read'], label?: string): Reading {
  return { name, help, read, label };
}
