import type { Readable } from 'node:stream';
import type { OutputFormat, Quality, SourceFormat } from '../contract/image-formats.ts';
import type { ResultAddress } from '../contract/result-key.ts';
import type { Animation, CodePoints, Orientation, Size } from '../formats/image-header.ts';
import type { AvMetadata } from '../formats/video/av-metadata.ts';

/** Bytes `first` to `last` inclusive; to the end without `last`. */
export interface ByteRange {
  readonly first: number;
  readonly last: number | undefined;
}

/** Validators of one state of an original; only their source interprets them. */
export interface SourceValidators {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** Digests of the requested URL and its redirects, in order; the last URL sent the validators. */
  readonly urlDigests: readonly string[];
}

export interface OpenOptions {
  /** Aborts the opening and the body. */
  readonly signal: AbortSignal;
  /** Range, cut at the original's end; a source without ranges returns the complete file. */
  readonly range?: ByteRange | undefined;
  /** State that the caller has; the source may confirm it instead of sending a body. */
  readonly known?: SourceValidators | undefined;
  /** Strong tag or `rangeValidator` for the range; for another state, the source may send the complete file. */
  readonly ifRange?: string | undefined;
  /** Tag of the requested state. A source without conditions ignores it, so the caller compares tags. */
  readonly ifMatch?: string | undefined;
  /** Whether the caller buffers the body, instead of forwarding it at a client's pace. */
  readonly isBuffered?: boolean | undefined;
}

export interface Opened {
  /** A paused stream; or bytes, if they are few. */
  readonly body: Readable | Uint8Array;
  /** Whether only the caller has the buffers of the body's chunks. */
  readonly isExclusive?: boolean;
  /** Range of `body`; `undefined` for the complete file. */
  readonly part: { readonly first: number; readonly last: number } | undefined;
  /** Size of the complete file in bytes, if declared. */
  readonly sizeBytes: number | undefined;
  /** Opaque tag of exactly these bytes, if the source has one. */
  readonly etag: string | undefined;
  /** Strong validator of another site's state. Without one, ranges may belong to different states. */
  readonly rangeValidator?: string | undefined;
  readonly lastModified: Date | undefined;
  readonly validators?: SourceValidators | undefined;
  /** Freshness that the source declares, in milliseconds. Omit to use the configured one. */
  readonly freshForMs?: number | undefined;
}

export interface Unchanged {
  readonly body?: undefined;
  readonly freshForMs: number;
}

/** Source of originals: a directory, a bucket, or other sites. Adapters throw only the errors named here. */
export interface Source {
  /** Whether the source has reliable tags, or originals are identified by a digest of their bytes. */
  readonly identity: 'tag' | 'digest';
  /**
   * Opens an original; the caller reads or destroys the body.
   *
   * @param key as built by `originKeyOf`; for other sites the URL
   * @returns `Unchanged` only for `known`; with an `identity` of `tag`, always with `sizeBytes` and `etag`
   * @throws MediaError `UNKNOWN_MEDIA`, `RANGE_NOT_SATISFIABLE` if the range begins at or after the end,
   *   `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; or `signal.reason`
   */
  open(key: string, options: OpenOptions): Promise<Opened | Unchanged>;
}

export interface ListedOriginal {
  readonly key: string;
  readonly sizeBytes: number;
}

export interface OriginListing {
  /**
   * Lists readable objects in no particular order, including those with invalid keys.
   *
   * @param prefix a name and a slash (`avatars/`), or empty for all
   * @param visit receives each object; returns whether to continue
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
  readonly originalEtag: string;
}

export interface OriginalIdentity {
  /** Tag of the source, or a digest of the bytes. */
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
  /** Files evicted since the start. */
  readonly evictions: number;
}

/**
 * Store of renderings that outlive the process and that replicas share. It may lose renderings at any time, but never
 * returns a wrong or incomplete one.
 */
export interface ResultStore {
  /**
   * Reads a rendering; returns `undefined` if it is missing or damaged.
   *
   * @param onFound called with the size before the store sends the body
   * @throws Error if the store fails; or `signal.reason`
   */
  read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined>;
  /** Stores or replaces a rendering. @throws Error if the store fails; no partial rendering is stored then */
  write(address: ResultAddress, result: StoredResult): Promise<void>;
  /**
   * Removes all renderings with a non-empty prefix of paths (`resultPath`), and returns their number.
   *
   * @throws Error if the store fails, a `timeoutError` if it does not respond; some renderings may be removed then
   */
  remove(prefix: string): Promise<number>;
  /** Ends background work; running reads and writes continue. */
  close(): void;
  /** Returns the fill level, if the store has a bound and has counted its contents. */
  usage?(): StoreUsage | undefined;
}

/** Complete description of a render, as plain data for another process. */
export interface RenderJob {
  /** Format of the original, by its magic bytes and the codec of its primary image. */
  readonly source: SourceFormat | 'video';
  /** Animation to render. Omit to render only the first frame. */
  readonly animation: Animation | undefined;
  /** Size of one decoded frame before orientation. */
  readonly originalSize: Size;
  /** EXIF orientation, undone before anything is measured. */
  readonly orientation: Orientation;
  /** Exponent of the samples' transfer function (sample = light ^ gamma). Omit for that of a profile, or of sRGB. */
  readonly gamma: number | undefined;
  /** Code points of a PNG; they override a profile and `gamma`. */
  readonly codePoints?: CodePoints | undefined;
  readonly isPlain?: boolean;
  /** Whether the original was encoded with loss; a WebP of it is then lossy, too (contract §3). */
  readonly isLossy?: boolean;
  /** Whether only the container is rewritten, without decoding. */
  readonly isRewrite: boolean;
  /** `scale` to exactly `size`; `crop`: scale to cover `size`, then cut out the centre. */
  readonly resize: 'none' | 'scale' | 'crop';
  /** Whether the decoder may downscale; the filter does the rest. */
  readonly shrinksOnLoad: boolean;
  readonly size: Size;
  readonly format: OutputFormat;
  readonly quality: Quality;
  /** Effort of the WebP encoder, 0 to 6 (`method` of libwebp). */
  readonly webpEffort: number;
  readonly maxInputPixels: number;
  readonly maxResultBytes: number;
  /** Whether the result is a ThumbHash; `size` then fits into 100×100 px. */
  readonly isPlaceholder?: boolean;
}

/** Heavy renders run in processes of lower priority, so that they never delay light ones. */
export const lanes = ['light', 'heavy'] as const;
export type Lane = (typeof lanes)[number];

export interface RenderBounds {
  readonly timeoutMs: number;
  /** Aborts when no request needs the result any more, which stops the job and its worker. */
  readonly signal: AbortSignal;
}

/** An original outside of memory; a worker requests its ranges. */
export interface RangeReader {
  readonly sizeBytes: number;
  /** Reads the bytes `[start, end)`. @throws MediaError `MEDIA_TOO_LARGE`, or of the source; `signal.reason` */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array>;
}

/** CPU slot for one job at a time. */
export interface RenderSlot {
  readonly isReady: boolean;
  /**
   * Renders within the deadline, and returns the encoded image.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original cannot be decoded or killed its decoder, `MEDIA_TOO_LARGE`
   *   if it decodes to more than the job allows, `TRANSFORM_TIMEOUT` after the deadline (with cause `WorkerLost` if a
   *   worker was lost), `OVERLOADED` without a worker; errors of the reader; `bounds.signal.reason`; any other error is
   *   a bug
   */
  render(
    original: Uint8Array | RangeReader,
    job: RenderJob,
    bounds: RenderBounds,
  ): Promise<Uint8Array>;
  /** Reads the metadata of a video or audio file. @throws as `render` */
  inspect(original: RangeReader, bounds: RenderBounds): Promise<AvMetadata>;
}

/** Decodes, transforms and encodes; `Admission` assigns the slots. */
export interface Renderer {
  readonly slots: Readonly<Record<Lane, readonly RenderSlot[]>>;
  /** Resolves within seconds of the start; unsupported videos have no posters. */
  readonly videoSupport?: Promise<{ readonly isSupported: boolean }> | undefined;
}

/** Cause of an error that ended a worker; the same request would end another one. */
export class WorkerLost extends Error {
  override readonly name = 'WorkerLost';
}

/**
 * Cause of an `ORIGIN_ERROR` for a 403 of S3, which is also its response for missing objects without the permission to
 * list.
 */
export class AccessRefused extends Error {
  override readonly name = 'AccessRefused';
}

/** Cause of an `ORIGIN_ERROR` if the original does not match `OpenOptions.ifMatch`. */
export class StateMismatch extends Error {
  override readonly name = 'StateMismatch';
}

/** Monotonic clock; tests replace it. */
export interface Clock {
  nowMs(): number;
}

/** Subset of pino's log. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}
