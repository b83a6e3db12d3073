import type { Readable } from 'node:stream';
import type { MediaRequest } from '../contract/media-request.ts';
import type { Validators } from '../contract/result-key.ts';
import type { RequestedBytes } from './originals/open-beginning.ts';
import type { PassthroughMedia } from './originals/passthrough.ts';
import type { MediaResult } from './ports.ts';
import type { CacheOutcome, RequestTrace } from './request-trace.ts';

/** Bytes that a response has, `first` to `last`, both included; the caller adds its own details. */
export interface SelectedBytes {
  readonly first: number;
  readonly last: number | undefined;
  /** Whether they are sent. */
  readonly hasBody: boolean;
}

/** Per-request state: cancellation, stages, conditions. */
export interface RequestContext<Selected = SelectedBytes> {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Whether the request has a condition, so that the identity of the original may suffice. */
  readonly isConditional: boolean;
  /** Whether the client has this state of a response that is not rendered yet. */
  readonly matchesCondition: (validators: Validators) => boolean;
  /** Returns the client to charge if this request starts a render. Omit to charge no client. */
  readonly rateLimitKey?: () => string;
  /** Called when the request starts to wait, with its outcome if it fails or its client leaves before the response. */
  readonly onWait?: (outcome: CacheOutcome) => void;
  /** Use of an unmodified original in the response. Omit to refuse originals that are not rendered. */
  readonly original?: {
    /** Returns the bytes to open; `ignoresRange` after the original was replaced meanwhile. */
    readonly requestedBytes: (ignoresRange: boolean) => RequestedBytes;
    readonly select: (
      original: PassthroughMedia,
      request: MediaRequest,
      ignoresRange: boolean,
    ) => Selected;
  };
}

/** A response, and its cache outcome. */
export type MediaResponse<Selected = SelectedBytes> =
  | { readonly kind: 'rendition'; readonly result: MediaResult; readonly outcome: CacheOutcome }
  | {
      readonly kind: 'not-modified';
      readonly validators: Validators;
      readonly outcome: CacheOutcome;
    }
  | {
      readonly kind: 'original';
      readonly original: PassthroughMedia;
      readonly selected: Selected;
      readonly body: Readable | undefined;
      readonly outcome: CacheOutcome;
    }
  /** Another site redirects to media of ours; without such media, the response is the error. */
  | { readonly kind: 'redirect'; readonly error: unknown };
