import type { MediaPipeline } from '../pipeline/media-pipeline.ts';
import type { Lane, ResultStore } from '../pipeline/ports.ts';
import type { Reading } from './prometheus-gauge.ts';

/** The pool of workers, as far as it is measured. */
interface WorkerGauges {
  readyProcessIdsOf(lane: Lane): readonly number[];
  rssBytesOf(lane: Lane): number;
  wantedOf(lane: Lane): number;
  readonly slots: Readonly<Record<Lane, number>>;
  readonly counters: {
    readonly restarts: number;
    readonly kills: number;
    readonly recycles: number;
  };
}

/** What the work is read from. */
export interface WorkSources {
  readonly pipeline: MediaPipeline;
  readonly resultStore: ResultStore | undefined;
  readonly workers: WorkerGauges;
}

const perLane = (read: (lane: Lane) => number) => ({ light: read('light'), heavy: read('heavy') });

/** Queue, slots and render processes. A row each. */
export function listRenders({ pipeline, workers }: WorkSources): readonly Reading[] {
  const { admission } = pipeline;
  return [
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
  ];
}

/** Caches, the result store and originals in memory. A row each. */
export function listMemory({ pipeline, resultStore }: WorkSources): readonly Reading[] {
  const { results, originals } = pipeline.memories;
  return [
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
      read: () => pipeline.store && { ...pipeline.store.writes },
    },
    {
      name: 'darkroom_originals_held_bytes',
      help: 'Originals that are being read or rendered, or wait for it.',
      read: () => pipeline.originalsBudget.heldBytes,
    },
    {
      name: 'darkroom_originals_max_bytes',
      help: 'What they may take (ORIGINALS_MEMORY_BYTES).',
      read: () => pipeline.originalsBudget.maxBytes,
    },
  ];
}
