import { blockKinds } from '../contract/block-request.ts';
import type { Lane, StoreUsage } from '../pipeline/ports.ts';
import type { UploadService } from '../pipeline/uploads/upload-service.ts';
import type { GaugeRow } from './metrics.ts';
import { checkReadiness, type ServiceState } from './readiness.ts';

export function listGauges(
  state: ServiceState,
  countLostLines: () => number,
): Readonly<Record<string, GaugeRow>> {
  const { pipeline, blocks, resultStore, workers, uploads, cdn, originHealth } = state;
  const { admission, originReads, originStreams, originalsBudget, rates, store } = pipeline;
  const { results, originals } = pipeline.caches;
  const connections = state.countConnections;
  const byLane = (help: string, read: (lane: Lane) => number): GaugeRow => [
    help,
    () => ({ light: read('light'), heavy: read('heavy') }),
    'lane',
  ];
  const byCache = (help: string, member: keyof StoreUsage): GaugeRow => [
    help,
    () => ({
      results: results[member],
      originals: originals[member],
      store: resultStore?.usage?.()?.[member],
    }),
    'cache',
  ];
  // 0 without uploads, since alerts need a series that always exists.
  const upload = (member: keyof UploadService['usage']) => () => uploads?.usage[member] ?? 0;
  return {
    darkroom_ready: [
      'Whether to route requests here, as reported by /readyz: 1 or 0.',
      () => Number(checkReadiness(state).status !== 'not ready'),
    ],
    darkroom_origin_reachable: [
      'Whether the origin responded recently, or its state is unknown: 1 or 0.',
      () => Number(originHealth.state !== 'failing'),
    ],
    darkroom_log_lines_lost_total: ['Log lines dropped because of a slow reader.', countLostLines],
    darkroom_queue_length: byLane('Renders that wait for a CPU slot.', (lane) =>
      admission.waitingIn(lane),
    ),
    darkroom_slots: byLane('CPU slots.', (lane) => workers.slots[lane].length),
    darkroom_slots_held: byLane('CPU slots in use.', (lane) => admission.occupiedSlotsOf(lane)),
    darkroom_workers: byLane(
      'Render processes that should be running; heavy ones start on demand.',
      (lane) => workers.expectedWorkers(lane),
    ),
    darkroom_workers_ready: byLane(
      'Render processes that are idle or busy.',
      (lane) => workers.readyProcessIdsOf(lane).length,
    ),
    darkroom_worker_resident_memory_bytes: byLane(
      'Resident memory of all render processes after their last jobs.',
      (lane) => workers.rssBytesOf(lane),
    ),
    darkroom_worker_restarts_total: [
      'Render processes started to replace one that ended or was killed.',
      () => workers.counters.restarts,
    ],
    darkroom_worker_kills_total: [
      'Render processes killed at a deadline, after the last request left, or for a protocol violation.',
      () => workers.counters.kills,
    ],
    darkroom_worker_recycles_total: ['Render processes recycled.', () => workers.counters.recycles],
    darkroom_cache_bytes: byCache(
      'Size of the entries of a cache, or of a store with a maximum size.',
      'heldBytes',
    ),
    darkroom_cache_max_bytes: byCache('Bound of darkroom_cache_bytes.', 'maxBytes'),
    darkroom_cache_entries: [
      'Entries of a cache in memory.',
      () => ({ results: results.size, originals: originals.size }),
      'cache',
    ],
    darkroom_cache_evictions_total: byCache(
      'Entries evicted to make room for others.',
      'evictions',
    ),
    darkroom_store_writes_total: [
      'Writes of renderings by outcome; dropped: the store was too slow.',
      () => ({ ...store?.writes }),
      'outcome',
    ],
    darkroom_originals_held_bytes: [
      'Memory of originals that are being read or rendered, or wait for either.',
      () => originalsBudget.heldBytes,
    ],
    darkroom_originals_max_bytes: [
      'Bound of darkroom_originals_held_bytes (ORIGINALS_MEMORY_BYTES).',
      () => originalsBudget.maxBytes,
    ],
    darkroom_origin_bodies_open: [
      'Bodies that the origin is sending, by purpose.',
      () => ({ transform: originReads.inUse, passthrough: originStreams.inUse }),
      'purpose',
    ],
    darkroom_origin_waiting: [
      'Reads that wait for another body to end.',
      () => ({ transform: originReads.waiting, passthrough: originStreams.waiting }),
      'purpose',
    ],
    darkroom_rate_clients: [
      'Clients with a remembered debt under RATE_LIMIT_REQUESTS.',
      () => rates?.clients ?? 0,
    ],
    darkroom_blocks: [
      'Blocks in the list, by kind.',
      () => Object.fromEntries(blockKinds.map((kind) => [kind, blocks?.index.countOf(kind) ?? 0])),
      'kind',
    ],
    darkroom_blocklist_generation: [
      'Generation of the list of blocks.',
      () => blocks?.generation ?? 0,
    ],
    darkroom_blocklist_age_seconds: [
      'Time since the last read of the list of blocks.',
      () => blocks?.ageSeconds ?? 0,
    ],
    darkroom_connections: ['Connected clients.', () => connections().connections],
    darkroom_max_connections: [
      'Maximum number of connected clients.',
      () => connections().maxConnections,
    ],
    darkroom_requests_in_flight: [
      'Requests whose response is not complete.',
      () => connections().requests,
    ],
    darkroom_max_requests_in_flight: [
      'Maximum number of requests in flight; further ones are rejected.',
      () => connections().maxRequests,
    ],
    darkroom_clients_cut_off_total: [
      'Connections closed because the client read slowly, was idle when a new one arrived, or exceeded the maximum.',
      () => {
        const { slowReaders, evicted, turnedAway } = connections();
        return { 'slow reader': slowReaders, evicted, 'turned away': turnedAway };
      },
      'reason',
    ],
    darkroom_edge_purges_pending: [
      'Purges that the CDN in front has not yet accepted in both rounds (EDGE).',
      () => cdn?.usage.pending ?? 0,
    ],
    darkroom_edge_oldest_purge_seconds: [
      'Age of the oldest purge that the CDN in front has not yet accepted in both rounds.',
      () => cdn?.usage.oldestSeconds ?? 0,
    ],
    darkroom_uploads_in_flight: ['Running uploads.', upload('uploads')],
    darkroom_max_uploads_in_flight: [
      'Maximum number of running uploads; further ones are rejected.',
      upload('maxUploads'),
    ],
    darkroom_upload_held_bytes: [
      'Memory of uploads without a declared length.',
      upload('heldBytes'),
    ],
    darkroom_upload_max_held_bytes: [
      'Bound of darkroom_upload_held_bytes (RELAY_MEMORY_BYTES).',
      upload('maxHeldBytes'),
    ],
  };
}
