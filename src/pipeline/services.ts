import type { BlockGuard } from './blocks/block-guard.ts';
import type { CdnPurger } from './cdn/cdn-purger.ts';
import type { MemoryCache } from './memory-cache.ts';
import type { Tools } from './meter.ts';
import type { Backends } from './originals/backend.ts';
import type { DetailStore } from './originals/detail-store.ts';
import type { MemoryBudget } from './originals/memory-budget.ts';
import type { OriginalRecords } from './originals/records.ts';
import type { CachedOriginal, MediaResult, Renderer } from './ports.ts';
import type { Rates } from './rates.ts';
import type { Admission } from './render/admission.ts';
import type { RenderLimits } from './render/plan.ts';
import type { Refusals } from './render/refusals.ts';
import type { GuardedStore } from './results/store.ts';

/** State and limits that the stages of all requests share; `createMediaPipeline` creates them once. */
export interface Services extends Backends, Tools {
  readonly records: OriginalRecords;
  readonly refusals: Refusals;
  readonly details: DetailStore;
  readonly caches: {
    readonly results: MemoryCache<MediaResult>;
    readonly originals: MemoryCache<CachedOriginal>;
  };
  /** Omit to keep results only in memory. */
  readonly store: GuardedStore | undefined;
  readonly originalsBudget: MemoryBudget;
  readonly admission: Admission;
  readonly renderer: Pick<Renderer, 'videoSupport'>;
  readonly renderLimits: RenderLimits;
  /** Omit to block nothing. */
  readonly blocks: BlockGuard | undefined;
  /** Omit to charge no client. */
  readonly rates: Rates | undefined;
  /** Omit to send purges to no CDN. */
  readonly cdn: CdnPurger | undefined;
  /** Release of renderings (`releaseWithEffort`). */
  readonly release: string;
  /** Maximum number of bytes read from one original by ranges. */
  readonly maxRangeBytes: number;
  /** Maximum size of an original that `GET /metadata` hashes, in bytes. */
  readonly maxHashedBytes: number;
  readonly closing: AbortSignal;
}
