import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/pipeline-release.ts';
import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Lane, ResultStore } from '../pipeline/ports.ts';
import type { UploadUsage } from '../pipeline/uploads/upload-service.ts';
import type { Reading } from './prometheus-gauge.ts';
import type { ConnectionCounters, Readiness } from './readiness.ts';

/** The pool of workers, as far as it is measured. */
interface WorkerGauges {
  readyProcessIdsOf(lane: Lane): readonly number[];
  rssBytesOf(lane: Lane): number;
  wantedOf(lane: Lane): number;
  readonly slots: Readonly<Record<Lane, number>>;
  readonly counters: Readonly<Record<'restarts' | 'kills' | 'recycles', number>>;
}

/** What is read from. */
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

/** What operators see besides what is counted as it happens: sizes, lengths, states. A row each. */
export function listGauges(sources: ReadingSources): readonly Reading[] {
  const { config, pipeline, resultStore, workers, countConnections, countUploads } = sources;
  const { admission, originReads, originStreams, originalsBudget, rates, store } = pipeline;
  const { results, originals } = pipeline.memories;
  // Zeros where there are no uploads: a metric that comes and goes is none.
  const ofUploads = (member: keyof UploadUsage) => () => countUploads?.()[member] ?? 0;
  return [
    {
      name: 'darkroom_build_info',
      help: 'Always 1; its labels tell which release runs, and which transforms.',
      labels: {
        pipeline_release: releaseWithEffort(config.renderLimits.webpEffort),
        commit: '',
        ...config.release,
      },
      read: () => 1,
    },
    {
      name: 'darkroom_ready',
      help: 'Whether requests should come here, as /readyz says: 1 or 0.',
      read: () => Number(sources.judge().status !== 'not ready'),
    },
    {
      name: 'darkroom_origin_reachable',
      help: 'Whether the origin has answered lately, or nothing is known to the contrary: 1 or 0.',
      read: () => Number(sources.originHealth.state !== 'failing'),
    },
    {
      name: 'darkroom_log_lines_lost_total',
      help: 'Lines of the log that were dropped, because its reader was too slow.',
      read: sources.countLostLines,
    },
    {
      name: 'darkroom_queue_length',
      help: 'Renders that wait for a CPU slot.',
      label: 'lane',
      read: () => perLane((lane) => admission.waitingIn(lane)),
    },
    {
      name: 'darkroom_slots',
      help: 'CPU slots there are.',
      label: 'lane',
      read: () => perLane((lane) => workers.slots[lane]),
    },
    {
      name: 'darkroom_slots_held',
      help: 'CPU slots that are held by a render.',
      label: 'lane',
      read: () => perLane((lane) => admission.heldSlotsOf(lane)),
    },
    {
      name: 'darkroom_workers',
      help: 'Render processes there should be now; heavy ones start when they are needed.',
      label: 'lane',
      read: () => perLane((lane) => workers.wantedOf(lane)),
    },
    {
      name: 'darkroom_workers_ready',
      help: 'Render processes that are idle or at work.',
      label: 'lane',
      read: () => perLane((lane) => workers.readyProcessIdsOf(lane).length),
    },
    {
      name: 'darkroom_worker_resident_memory_bytes',
      help: 'Resident memory of render processes after their last jobs, added up.',
      label: 'lane',
      read: () => perLane((lane) => workers.rssBytesOf(lane)),
    },
    {
      name: 'darkroom_worker_restarts_total',
      help: 'Render processes started in place of one that ended or was killed.',
      read: () => workers.counters.restarts,
    },
    {
      name: 'darkroom_worker_kills_total',
      help: 'Render processes killed: at a deadline, because nobody waited any more, for breaking the protocol.',
      read: () => workers.counters.kills,
    },
    {
      name: 'darkroom_worker_recycles_total',
      help: 'Render processes replaced because they were worn.',
      read: () => workers.counters.recycles,
    },
    {
      name: 'darkroom_cache_bytes',
      help: 'What the entries of a cache take; of a store, where it bounds itself.',
      label: 'cache',
      read: () => ({
        results: results.heldBytes,
        originals: originals.heldBytes,
        store: resultStore?.usage?.()?.heldBytes,
      }),
    },
    {
      name: 'darkroom_cache_max_bytes',
      help: 'What they may take.',
      label: 'cache',
      read: () => ({
        results: results.maxBytes,
        originals: originals.maxBytes,
        store: resultStore?.usage?.()?.maxBytes,
      }),
    },
    {
      name: 'darkroom_cache_entries',
      help: 'Entries of a cache in memory.',
      label: 'cache',
      read: () => ({ results: results.entries, originals: originals.entries }),
    },
    {
      name: 'darkroom_cache_evictions_total',
      help: 'Entries that had to go to make room for others.',
      label: 'cache',
      read: () => ({
        results: results.evictions,
        originals: originals.evictions,
        store: resultStore?.usage?.()?.evictions,
      }),
    },
    {
      name: 'darkroom_store_writes_total',
      help: 'Renderings that were to be stored, by what became of them; dropped: the store was too slow.',
      label: 'outcome',
      read: () => store && { ...store.writes },
    },
    {
      name: 'darkroom_originals_held_bytes',
      help: 'Originals that are being read or rendered, or wait for it.',
      read: () => originalsBudget.heldBytes,
    },
    {
      name: 'darkroom_originals_max_bytes',
      help: 'What they may take (ORIGINALS_MEMORY_BYTES).',
      read: () => originalsBudget.maxBytes,
    },
    {
      name: 'darkroom_origin_bodies_open',
      help: 'Bodies that the origin is sending, by what is done with them.',
      label: 'purpose',
      read: () => ({ transform: originReads.inside, passthrough: originStreams.inside }),
    },
    {
      name: 'darkroom_origin_waiting',
      help: 'Reads that wait for one of these to end.',
      label: 'purpose',
      read: () => ({ transform: originReads.waiting, passthrough: originStreams.waiting }),
    },
    {
      name: 'darkroom_rate_clients',
      help: 'Clients whose renders are remembered, to limit them (RATE_LIMIT_REQUESTS).',
      read: () => rates?.clients ?? 0,
    },
    {
      name: 'darkroom_connections',
      help: 'Clients that are connected.',
      read: () => countConnections().connections,
    },
    {
      name: 'darkroom_max_connections',
      help: 'How many may be.',
      read: () => countConnections().maxConnections,
    },
    {
      name: 'darkroom_requests_in_flight',
      help: 'Requests that are not answered to the end.',
      read: () => countConnections().requests,
    },
    {
      name: 'darkroom_max_requests_in_flight',
      help: 'How many may be; more are turned away.',
      read: () => countConnections().maxRequests,
    },
    {
      name: 'darkroom_clients_cut_off_total',
      help: 'Connections cut: of slow readers; of idle ones for the sake of new ones; of new ones for want of room.',
      label: 'reason',
      read: () => {
        const { slowReaders, evicted, turnedAway } = countConnections();
        return { 'slow reader': slowReaders, evicted, 'turned away': turnedAway };
      },
    },
    {
      name: 'darkroom_uploads_in_flight',
      help: 'Uploads under way.',
      read: ofUploads('uploads'),
    },
    {
      name: 'darkroom_max_uploads_in_flight',
      help: 'How many may be; more are turned away.',
      read: ofUploads('maxUploads'),
    },
    {
      name: 'darkroom_upload_held_bytes',
      help: 'Memory that uploads hold which have not told their length.',
      read: ofUploads('heldBytes'),
    },
    {
      name: 'darkroom_upload_max_held_bytes',
      help: 'What they may hold (RELAY_MEMORY_BYTES).',
      read: ofUploads('maxHeldBytes'),
    },
  ];
}
