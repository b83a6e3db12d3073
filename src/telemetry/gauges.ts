import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/pipeline-release.ts';
import type { OriginHealth } from '../pipeline/originals/origin-health.ts';
import type { UploadUsage } from '../pipeline/uploads/upload-service.ts';
import type { Reading } from './prometheus-gauge.ts';
import type { ConnectionCounters, Readiness } from './readiness.ts';
import { listMemory, listRenders, type WorkSources } from './work-gauges.ts';

/** What is read from. */
interface ReadingSources extends WorkSources {
  readonly config: Config;
  readonly originHealth: OriginHealth;
  readonly countConnections: () => ConnectionCounters;
  readonly judge: () => Readiness;
  readonly countLostLines: () => number;
  /** `undefined`: there are no uploads. */
  readonly countUploads: (() => UploadUsage) | undefined;
}

/** What operators see besides what is counted as it happens: sizes, lengths, states. A row each. */
export function listGauges(sources: ReadingSources): readonly Reading[] {
  return [
    ...listStates(sources),
    ...listRenders(sources),
    ...listMemory(sources),
    ...listClients(sources),
    ...listUploads(sources),
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
      read: () => Number(judge().status !== 'not ready'),
    },
    {
      name: 'darkroom_origin_reachable',
      help: 'Whether the origin has answered lately, or nothing is known to the contrary: 1 or 0.',
      read: () => Number(originHealth.state !== 'failing'),
    },
    {
      name: 'darkroom_log_lines_lost_total',
      help: 'Lines of the log that were dropped, because its reader was too slow.',
      read: countLostLines,
    },
  ];
}

function listClients({ pipeline, countConnections }: ReadingSources): readonly Reading[] {
  const { originReads, originStreams, rates } = pipeline;
  return [
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
  ];
}

/** Zeros where there are no uploads: a metric that comes and goes is none. */
function listUploads({ countUploads }: ReadingSources): readonly Reading[] {
  const read = (member: keyof UploadUsage) => () => countUploads?.()[member] ?? 0;
  return [
    {
      name: 'darkroom_uploads_in_flight',
      help: 'Uploads under way.',
      read: read('uploads'),
    },
    {
      name: 'darkroom_max_uploads_in_flight',
      help: 'How many may be; more are turned away.',
      read: read('maxUploads'),
    },
    {
      name: 'darkroom_upload_held_bytes',
      help: 'Memory that uploads hold which have not told their length.',
      read: read('heldBytes'),
    },
    {
      name: 'darkroom_upload_max_held_bytes',
      help: 'What they may hold (RELAY_MEMORY_BYTES).',
      read: read('maxHeldBytes'),
    },
  ];
}
