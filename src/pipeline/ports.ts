import type { Readable } from 'node:stream';
import type { OutputFormat, Quality, SourceFormat } from '../contract/image-formats.ts';
import type { ResultAddress } from '../contract/result-key.ts';
import type { Animation, CodePoints, Orientation, Size } from '../formats/image-header.ts';
import type { AvMetadata } from '../formats/video/av-metadata.ts';

/** Bytes `first` to `last`, both included, counted from 0; without `last`, to the end. */
export interface ByteRange {
  readonly first: number;
  readonly last: number | undefined;
}

/** Validators of one state of an original, which only their source interprets. */
export interface SourceValidators {
  /** Values of the `ETag` header, weak or strong, and of `Last-Modified`. */
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** Digests of the requested URL and of its redirects, in order; the last URL sent the validators. */
  readonly urlDigests: readonly string[];
}

export interface OpenOptions {
  /** Ends the opening, and the body. */
  readonly signal: AbortSignal;
  /** Range, cut at the original's end; a source without ranges sends the complete file. */
  readonly range?: ByteRange | undefined;
  /** State that the caller has, which the source may confirm instead of sending a body. */
  readonly known?: SourceValidators | undefined;
  /** Strong tag or `rangeValidator` of the state of the range; of another state the source may send the complete file. */
  readonly ifRange?: string | undefined;
  /** Tag of the requested state; a source without conditions opens any state, and the caller compares tags. */
  readonly ifMatch?: string | undefined;
  /** Whether the caller buffers the body as it arrives, instead of forwarding it at a client's pace. */
  readonly isBuffered?: boolean | undefined;
}

/** An opened original: its state, and its bytes. */
export interface Opened {
  /** A paused stream with backpressure, or the bytes if they are few. */
  readonly body: Readable | Uint8Array;
  /** Whether only the caller has the buffers of the body's chunks. */
  readonly isExclusive?: boolean;
  /** Range of `body`; `undefined`: the complete file. */
  readonly part: { readonly first: number; readonly last: number } | undefined;
  /** Size of the complete file in bytes; `undefined` if the source does not declare it. */
  readonly sizeBytes: number | undefined;
  /** Opaque tag of exactly these bytes; `undefined` if the source has none. */
  readonly etag: string | undefined;
  /** Strong validator of another site's state, for `ifRange`. Without it, its ranges may be of different states. */
  readonly rangeValidator?: string | undefined;
  readonly lastModified: Date | undefined;
  /** Validators of this state, if the source can confirm it. */
  readonly validators?: SourceValidators | undefined;
  /** Period for which the state may be served without revalidation, in milliseconds. Omit to use the configured one. */
  readonly freshForMs?: number | undefined;
}

/** Confirmation of the known state. */
export interface Unchanged {
  readonly body?: undefined;
  readonly freshForMs: number;
}

/** Source of originals: a directory, a bucket, or other sites. Adapters translate their errors into those named here. */
export interface Source {
  /** Identity of originals: a tag of the source, or a digest of the bytes. */
  readonly identity: 'tag' | 'digest';
  /**
   * Opens an original; the body must be read or destroyed.
   *
   * @param key as built by `originKeyOf`, validated segments joined by `/`; for other sites the URL
   * @returns `Unchanged` only for `known`; with an `identity` of `tag`, `sizeBytes` and `etag` always
   * @throws MediaError `UNKNOWN_MEDIA`, `RANGE_NOT_SATISFIABLE` if the range begins at or after the end, `ORIGIN_ERROR`,
   *   `ORIGIN_TIMEOUT`, `OVERLOADED`; or `signal.reason`
   */
  open(key: string, options: OpenOptions): Promise<Opened | Unchanged>;
}

export interface ListedOriginal {
  readonly key: string;
  readonly sizeBytes: number;
}

export interface OriginListing {
  /**
   * Lists readable objects in no particular order, also those with invalid keys.
   *
   * @param prefix a name and a slash, `avatars/`; or empty, for all
   * @param visit receives one object after another; returns whether to continue
   * @throws MediaError `ORIGIN_ERROR`; or `signal.reason`
   */
  list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean | Promise<boolean>,
    signal: AbortSignal,
  ): Promise<void>;
}

export interface MediaResult {
  readonly body: Uint8Array;
  readonly mimeType: string;
  readonly etag: string;
  readonly lastModified: Date | undefined;
  /** Identity of its original. */
  readonly originalEtag: string;
}

/** Identity of one state of an original. */
export interface OriginalIdentity {
  /** The source's tag, or a digest of the bytes. */
  readonly etag: string;
  readonly lastModified: Date | undefined;
}

export interface CachedOriginal extends OriginalIdentity {
  readonly bytes: Uint8Array;
}

export type StoredResult = Pick<MediaResult, 'body' | 'mimeType'>;

export interface StoreUsage {
  readonly heldBytes: number;
  readonly maxBytes: number;
  /** Files removed to make room, since the start. */
  readonly evictions: number;
}

/**
 * Store of renderings that outlive the process and that replicas share. It may lose any of them at any time, but never
 * returns a wrong or incomplete one.
 */
export interface ResultStore {
  /**
   * Reads a rendering; returns `undefined` if it is missing or damaged.
   *
   * @param onFound called with the size before the store sends the body
   * @throws Error if the store fails; `signal.reason`
   */
  read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined>;
  /** Stores a rendering, or replaces it. @throws Error if the store fails; no partial rendering is stored then */
  write(address: ResultAddress, result: StoredResult): Promise<void>;
  /**
   * Removes all renderings with a prefix of paths (`resultPath`), which is not empty, and returns their number.
   *
   * @throws Error if the store fails, a `timeoutError` if it does not respond; some renderings may be removed then
   */
  remove(prefix: string): Promise<number>;
  /** Ends the background work of the store; running reads and writes continue. */
  close(): void;
  /** Returns the fill level, if the store bounds itself and has counted its contents. */
  usage?(): StoreUsage | undefined;
}

/** Complete description of a render; plain data that can cross a process boundary. */
export interface RenderJob {
  /** Format of the original, by its magic bytes and the codec of its primary image; of a `video`, one picture is shown. */
  readonly source: SourceFormat | 'video';
  /** Animation to render frame by frame. Omit to render only the first frame. */
  readonly animation: Animation | undefined;
  /** Size of one decoded frame, not yet oriented. */
  readonly originalSize: Size;
  /** EXIF orientation to undo before anything is measured. */
  readonly orientation: Orientation;
  /** Exponent of the samples' own transfer function (sample = light ^ gamma). Omit for that of a profile, or of sRGB. */
  readonly gamma: number | undefined;
  /** Code points of the samples of a PNG, which replace a profile and `gamma`. */
  readonly codePoints?: CodePoints | undefined;
  /** Whether sharp converts the samples to sRGB while it decodes them (`ImageHeader.isPlain`). */
  readonly isPlain?: boolean;
  /** Whether the original was encoded with loss (`ImageHeader.hasLoss`): then a WebP of it is lossy, too (contract §3). */
  readonly isLossy?: boolean;
  /** Whether only the container is rewritten (`rewrite` of its row), without decoding. */
  readonly isRewrite: boolean;
  /** `scale` to exactly `size`; `crop`: scale to cover `size`, then cut its centre out. */
  readonly resize: 'none' | 'scale' | 'crop';
  /** Whether the decoder may reduce the picture if it can; the filter does the rest. */
  readonly shrinksOnLoad: boolean;
  readonly size: Size;
  readonly format: OutputFormat;
  /** The encoder's settings follow from format and quality (`outputFormats`). */
  readonly quality: Quality;
  /** Effort of the encoder of WebP: 0 to 6 (libwebp's `method`). */
  readonly webpEffort: number;
  readonly maxInputPixels: number;
  readonly maxResultBytes: number;
  /** Whether the result is the ThumbHash of the picture, which fits into 100×100 px, instead of an image. */
  readonly isPlaceholder?: boolean;
}

/** Heavy renders have processes of lower priority, so that light ones never wait for them. */
export const lanes = ['light', 'heavy'] as const;
export type Lane = (typeof lanes)[number];

export interface RenderBounds {
  readonly timeoutMs: number;
  /** Aborts when no request waits for the result any more, which stops the job and its worker. */
  readonly signal: AbortSignal;
}

/** An original that is not in memory, of which a worker requests ranges. */
export interface RangeReader {
  readonly sizeBytes: number;
  /** Reads the bytes `[start, end)`. @throws MediaError `MEDIA_TOO_LARGE`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`; `signal.reason` */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array>;
}

/** CPU slot of a lane, for one job at a time. */
export interface RenderSlot {
  readonly isReady: boolean;
  /**
   * Renders until the end or the deadline, and returns the encoded image.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original cannot be decoded or killed its decoder, `MEDIA_TOO_LARGE` if it
   *   decodes to more than the job allows, `TRANSFORM_TIMEOUT` after the deadline (with a `WorkerLost` as cause if a worker
   *   was lost), `OVERLOADED` without a worker; errors of the reader; `bounds.signal.reason`; any other error is a bug
   */
  render(
    original: Uint8Array | RangeReader,
    job: RenderJob,
    bounds: RenderBounds,
  ): Promise<Uint8Array>;
  /** Reads the metadata of a video or audio file. @throws as `render` */
  inspect(original: RangeReader, bounds: RenderBounds): Promise<AvMetadata>;
}

/** Decodes, transforms and encodes, in the slots of each lane; `Admission` assigns them. */
export interface Renderer {
  readonly slots: Readonly<Record<Lane, readonly RenderSlot[]>>;
  /** Resolves within seconds of the start, once the decoder has been tried; without it, videos have no posters. */
  readonly videoSupport?: Promise<{ readonly isSupported: boolean }> | undefined;
}

/** Cause of an error that cost a worker: the same request would cost another one. */
export class WorkerLost extends Error {
  override readonly name = 'WorkerLost';
}

/** Cause of an `ORIGIN_ERROR` for a 403 of S3, also the response for missing objects to clients that may not list. */
export class AccessRefused extends Error {
  override readonly name = 'AccessRefused';
}

/** Cause of an `ORIGIN_ERROR` if an original is in another state than `OpenOptions.ifMatch`. */
export class ReplacedMeanwhile extends Error {
  override readonly name = 'ReplacedMeanwhile';
}

/** Monotonic clock, in milliseconds since a fixed moment, which tests replace. */
export interface Clock {
  nowMs(): number;
}

/** Methods of pino's log that are needed. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}
