import type { Config } from '../config/config.ts';
import { PIPELINE_RELEASE } from '../contract/pipeline-release.ts';
import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { Lane, ResultStore } from '../pipeline/ports.ts';
import type { ConnectionCounters } from './connection-counters.ts';
import type { Reading } from './prometheus-gauge.ts';
import type { Readiness } from './readiness.ts';

/** The pool of workers, as far as it is measured. */
export interface WorkerGauges {
  readyProcessIdsOf(lane: Lane): readonly number[];
  rssBytesOf(lane: Lane): number;
  readonly counters: {
    readonly restarts: number;
    readonly kills: number;
    readonly recycles: number;
  };
}

/** What is read from. */
export interface ReadingSources {
  readonly config: Config;
  readonly pipeline: MediaPipeline;
  readonly resultStore: ResultStore | undefined;
  readonly workers: WorkerGauges;
  readonly originHealth: OriginHealth;
  readonly countConnections: () => ConnectionCounters;
  readonly judge: () => Readiness;
  readonly countLostLines: () => number;
}

const perLane = (read: (lane: Lane) => number) => ({ light: read('light'), heavy: read('heavy') });

/** What the operator is told of besides what is counted as it happens: sizes, lengths, states. A row each. */
export function listGauges(sources: ReadingSources): readonly Reading[] {
  return [
    ...listStates(sources),
    ...listRenders(sources),
    ...listMemory(sources),
    ...listClients(sources),
  ];
}

function listStates({
  config,
  originHealth,
  judge,
  countLostLines,
}: ReadingSources): readonly Reading[] {
  return [
    {
      name: 'darkroom_build_info',
      help: 'Always 1; its labels tell which release runs, and which transforms.',
      type: 'gauge',
      labels: { pipeline_release: PIPELINE_RELEASE, commit: '', ...config.release },
      read: () => 1,
    },
    {
      name: 'darkroom_ready',
      help: 'Whether requests should come here, as /readyz says: 1 or 0.',
      type: 'gauge',
      read: () => Number(judge().status !== 'not ready'),
    },
    {
      name: 'darkroom_origin_reachable',
      help: 'Whether the origin has answered lately, or nothing is known to the contrary: 1 or 0.',
      type: 'gauge',
      read: () => Number(originHealth.state !== 'failing'),
    },
    {
      name: 'darkroom_log_lines_lost_total',
      help: 'Lines of the log that were dropped, because its reader was too slow.',
      type: 'counter',
      read: countLostLines,
    },
  ];
}

function listRenders({ config, pipeline, workers }: ReadingSources): readonly Reading[] {
  const { admission } = pipeline;
  return [
    {
      name: 'darkroom_queue_length',
      help: 'Renders that wait for a CPU slot.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => admission.waitingIn(lane)),
    },
    {
      name: 'darkroom_slots',
      help: 'CPU slots there are.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => config.admission.slots[lane]),
    },
    {
      name: 'darkroom_slots_held',
      help: 'CPU slots that are held by a render.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => admission.heldSlotsOf(lane)),
    },
    {
      name: 'darkroom_workers',
      help: 'Render processes there should be.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => config.renderer.workers[lane]),
    },
    {
      name: 'darkroom_workers_ready',
      help: 'Render processes that are idle or at work.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => workers.readyProcessIdsOf(lane).length),
    },
    {
      name: 'darkroom_worker_resident_memory_bytes',
      help: 'Resident memory of render processes after their last jobs, added up.',
      type: 'gauge',
      label: 'lane',
      read: () => perLane((lane) => workers.rssBytesOf(lane)),
    },
    {
      name: 'darkroom_worker_restarts_total',
      help: 'Render processes started in place of one that ended or was killed.',
      type: 'counter',
      read: () => workers.counters.restarts,
    },
    {
      name: 'darkroom_worker_kills_total',
      help: 'Render processes killed: at a deadline, because nobody waited any more, for breaking the protocol.',
      type: 'counter',
      read: () => workers.counters.kills,
    },
    {
      name: 'darkroom_worker_recycles_total',
      help: 'Render processes replaced because they were worn.',
      type: 'counter',
      read: () => workers.counters.recycles,
    },
  ];
}

function listMemory({ pipeline, resultStore }: ReadingSources): readonly Reading[] {
  const { results: answers, originals } = pipeline.memories;
  return [
    {
      name: 'darkroom_cache_bytes',
      help: 'What the entries of a cache take; of a store, where it bounds itself.',
      type: 'gauge',
      label: 'cache',
      read: () => ({
        results: answers.heldBytes,
        originals: originals.heldBytes,
        store: resultStore?.usage?.()?.heldBytes,
      }),
    },
    {
      name: 'darkroom_cache_max_bytes',
      help: 'What they may take.',
      type: 'gauge',
      label: 'cache',
      read: () => ({
        results: answers.maxBytes,
        originals: originals.maxBytes,
        store: resultStore?.usage?.()?.maxBytes,
      }),
    },
    {
      name: 'darkroom_cache_entries',
      help: 'Entries of a cache in memory.',
      type: 'gauge',
      label: 'cache',
      read: () => ({ results: answers.entries, originals: originals.entries }),
    },
    {
      name: 'darkroom_cache_evictions_total',
      help: 'Entries that had to go to make room for others.',
      type: 'counter',
      label: 'cache',
      read: () => ({
        results: answers.evictions,
        originals: originals.evictions,
        store: resultStore?.usage?.()?.evictions,
      }),
    },
    {
      name: 'darkroom_store_writes_total',
      help: 'Renderings that were to be stored, by what became of them; dropped: the store was too slow.',
      type: 'counter',
      label: 'outcome',
      read: () => pipeline.store && { ...pipeline.store.writes },
    },
    {
      name: 'darkroom_originals_held_bytes',
      help: 'Originals that are being read or rendered, or wait for it.',
      type: 'gauge',
      read: () => pipeline.originalsBudget.heldBytes,
    },
    {
      name: 'darkroom_originals_max_bytes',
      help: 'What they may take (ORIGINALS_MEMORY_BYTES).',
      type: 'gauge',
      read: () => pipeline.originalsBudget.maxBytes,
    },
  ];
}

function listClients({ pipeline, countConnections }: ReadingSources): readonly Reading[] {
  const { originReads, originStreams } = pipeline;
  return [
    {
      name: 'darkroom_origin_bodies_open',
      help: 'Bodies that the origin is sending, by what is done with them.',
      type: 'gauge',
      label: 'purpose',
      read: () => ({ transform: originReads.inside, passthrough: originStreams.inside }),
    },
    {
      name: 'darkroom_origin_waiting',
      help: 'Reads that wait for one of these to end.',
      type: 'gauge',
      label: 'purpose',
      read: () => ({ transform: originReads.waiting, passthrough: originStreams.waiting }),
    },
    {
      name: 'darkroom_connections',
      help: 'Clients that are connected.',
      type: 'gauge',
      read: () => countConnections().connections,
    },
    {
      name: 'darkroom_max_connections',
      help: 'How many may be.',
      type: 'gauge',
      read: () => countConnections().maxConnections,
    },
    {
      name: 'darkroom_requests_in_flight',
      help: 'Requests that are not answered to the end.',
      type: 'gauge',
      read: () => countConnections().requests,
    },
    {
      name: 'darkroom_max_requests_in_flight',
      help: 'How many may be; more are turned away.',
      type: 'gauge',
      read: () => countConnections().maxRequests,
    },
    {
      name: 'darkroom_clients_cut_off_total',
      help: 'Connections cut: of slow readers; of idle ones for the sake of new ones; of new ones for want of room.',
      type: 'counter',
      label: 'reason',
      read: () => {
        const { slowReaders, evicted, turnedAway } = countConnections();
        return { 'slow reader': slowReaders, evicted, 'turned away': turnedAway };
      },
    },
  ];
}
