import type { Readable } from 'node:stream';
import type { MediaRequest } from '../contract/media-request.ts';
import type { Validators } from '../contract/result-key.ts';
import type { RequestedBytes } from './originals/open-beginning.ts';
import type { PassthroughMedia } from './originals/passthrough.ts';
import type { MediaResult } from './ports.ts';
import type { CacheOutcome, RequestTrace } from './request-trace.ts';

/** Bytes of a response, `first` to `last` inclusive; the caller adds its own members. */
export interface SelectedBytes {
  readonly first: number;
  readonly last: number | undefined;
  readonly hasBody: boolean;
}

export interface RequestContext<Selected = SelectedBytes> {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Whether the request is conditional: the identity of the original may then suffice. */
  readonly isConditional: boolean;
  /** Whether the client has a response with these validators, before it is rendered. */
  readonly matchesCondition: (validators: Validators) => boolean;
  /** Returns the client to charge for a render. Omit to charge no client. */
  readonly rateLimitKey?: () => string;
  /** Called when the request starts to wait, with the outcome to report if no response follows. */
  readonly onWait?: (outcome: CacheOutcome) => void;
  /** Selects the bytes of unmodified originals. Omit to reject originals that are not rendered. */
  readonly original?: {
    /** Returns the bytes to open. A retry after the original was replaced ignores the requested range. */
    readonly requestedBytes: (ignoresRange: boolean) => RequestedBytes;
    readonly select: (
      original: PassthroughMedia,
      request: MediaRequest,
      ignoresRange: boolean,
    ) => Selected;
  };
}

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
  /** Another site redirects to a local URL; `error` is the response if no media match. */
  | { readonly kind: 'redirect'; readonly error: unknown };
