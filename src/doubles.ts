import type { ClientLimits } from './http/connections/connections.ts';
import type { SharedObjects } from './pipeline/blocks/ports.ts';
import type { Sleep } from './pipeline/cdn/cdn-purger.ts';
import type { OriginalWriter } from './pipeline/originals/original-writer.ts';
import type { Clock, Renderer, ResultStore, Source } from './pipeline/ports.ts';
import type { UploadLimits } from './pipeline/uploads/upload-service.ts';
import type { SiteDoubles } from './storage/remote/open-sites.ts';
import type { WorkerPoolOptions } from './workers/pool.ts';

/** Replacements for tests. */
export interface Doubles {
  readonly clock?: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock?: () => number;
  readonly sleep?: Sleep;
  readonly origin?: Source;
  readonly originalWriter?: OriginalWriter;
  readonly renderer?: Renderer;
  readonly resultStore?: ResultStore;
  /** Objects of the block list and of purges for the CDN. */
  readonly objects?: SharedObjects;
  readonly workerFiles?: Partial<Pick<WorkerPoolOptions, 'forkServerFile' | 'doubles'>>;
  readonly clientLimits?: Partial<ClientLimits>;
  readonly uploadLimits?: Partial<UploadLimits>;
  readonly siteDoubles?: SiteDoubles;
}
