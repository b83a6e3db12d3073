import type { Readable } from 'node:stream';
import type { ByteRange } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import type { Validators } from '../validators.ts';

/** An original, to be sent out byte for byte. */
export interface PassthroughMedia {
  readonly validators: Validators;
  /** `undefined` where another site does not say. */
  readonly sizeBytes: number | undefined;
  /** Told from its first bytes. */
  readonly contentType: string;
  /** Whether parts of it can be had. */
  readonly hasRanges: boolean;
  /** How long it may be kept, where another site has a say in that. */
  readonly maxAgeSeconds?: number;
  /**
   * The bytes `first` to `last`, both included, or to the end; the receiver's pace is the origin's pace.
   *
   * @throws MediaError as `Origin.read` does; `OriginalReplaced` where it must be opened anew
   */
  readonly stream: (first: number, last: number | undefined) => Promise<Readable>;
  /** Lets go of the origin without taking a byte. */
  readonly discard: () => void;
}

/** What one request brings along. */
export interface PassthroughOptions {
  /** Ends the reading when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /**
   * Whether the whole body is likely to be sent. If not (a HEAD, a range, a condition), only the
   * first bytes are read at first: enough to respond, and no transfer has to be broken off.
   */
  readonly isWhole: boolean;
  readonly isPart: boolean;
  /** That part, where it is the beginning: another site need not be asked for anything before. */
  readonly beginning?: ByteRange | undefined;
}

/** Something of another site is not what it was when its parts were asked for last. */
export class OriginalReplaced extends Error {
  override readonly name = 'OriginalReplaced';
}
