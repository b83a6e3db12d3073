import type { ErrorCode } from '../media/errors.ts';
import type { RenderJob } from './plan.ts';

/** One job, as the main process sends it to a worker; a worker has one at a time. */
export interface RenderCommand {
  readonly original: Uint8Array;
  readonly job: RenderJob;
}

/** What a worker says: once that it is ready, then per job that it has begun, and one answer. */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begun' }
  | { readonly kind: 'rendered'; readonly body: Uint8Array }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      /** For the log. */
      readonly detail: string;
    };
