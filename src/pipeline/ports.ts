import type { Readable } from 'node:stream';
import type { OutputFormat, Quality, SourceFormat } from '../contract/image-formats.ts';
import type { ResultAddress } from '../contract/result-key.ts';
import type { Animation, CodePoints, Orientation, Size } from '../formats/image-facts.ts';
import type { MovingFacts } from '../formats/video/video-facts.ts';

/** Bytes `first` to `last`, both included, counted from 0; without `last`, to the end. */
export interface ByteRange {
  readonly first: number;
  readonly last: number | undefined;
}

/** Validators of one state of an original, in the words of its source, which alone gets them back. */
export interface SourceValidators {
  /** Value of the `ETag` header, weak or strong. */
  readonly etag: string | undefined;
  /** Value of the `Last-Modified` header. */
  readonly lastModified: string | undefined;
  /** Digests of the requested URL and of those of its redirects, in order; the last URL sent the validators. */
  readonly urlDigests: readonly string[];
}

export interface OpenOptions {
  /** Ends the opening, and the body. */
  readonly signal: AbortSignal;
  /** Limits the body to a part, cut at the original's end; a source that knows no ranges sends the whole. */
  readonly range?: ByteRange | undefined;
  /** State that the caller has; the source may confirm it instead of sending a body. */
  readonly known?: SourceValidators | undefined;
  /** Strong tag or `rangeValidator`: the part is wanted of this state alone; of another state the source may send the whole. */
  readonly ifRange?: string | undefined;
  /** Tag of the only state that is wanted; a source that knows no conditions opens any, and the caller compares tags. */
  readonly ifMatch?: string | undefined;
  /** Whether the caller takes the body into memory as it comes, and does not pass it on at a client's pace. */
  readonly isHeld?: boolean | undefined;
}

/** An opened original: its state, and its bytes. */
export interface Opened {
  /** Not yet flowing, its reader's pace is the source's pace; or the bytes themselves, where they are few. */
  readonly body: Readable | Uint8Array;
  /** The bytes that `body` has; `undefined`: all of them. */
  readonly part: { readonly first: number; readonly last: number } | undefined;
  /** Size of the whole in bytes, also where `body` is a part; `undefined` where the source does not tell. */
  readonly sizeBytes: number | undefined;
  /** Opaque tag of these very bytes: other bytes have another one. `undefined` where the source has none. */
  readonly etag: string | undefined;
  /** Strong validator of another site's state, for `ifRange`; `undefined`: its parts cannot be tied together. */
  readonly rangeValidator?: string | undefined;
  readonly lastModified: Date | undefined;
  /** Validators of this state; `undefined`: the source confirms none. */
  readonly validators?: SourceValidators | undefined;
  /** Period for which the state may be served without asking again, in milliseconds; `undefined`: as configured. */
  readonly freshForMs?: number | undefined;
}

/** Confirmation that the known state still holds. */
export interface Unchanged {
  readonly body?: undefined;
  readonly freshForMs: number;
}

/** Where originals are: a folder, a bucket, or other sites. Adapters translate foreign errors into those named here. */
export interface Source {
  /** Identity of an original here: the tag that the source gives it, or a digest of its bytes. */
  readonly identity: 'tag' | 'digest';
  /**
   * Opens an original; the body must be read or destroyed.
   *
   * @param key as built by `originKeyOf`, segments joined by `/`, each of them validated; for other sites the URL
   * @returns `Unchanged` only where `known` was given; with an `identity` of `tag`, `sizeBytes` and `etag` always
   * @throws MediaError `UNKNOWN_MEDIA` if it is missing, `RANGE_NOT_SATISFIABLE` if the range begins at or after its end,
   *   `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; or `signal.reason`
   */
  open(key: string, options: OpenOptions): Promise<Opened | Unchanged>;
}

/** An original, as a listing of the storage shows it. */
export interface ListedOriginal {
  readonly key: string;
  readonly sizeBytes: number;
}

/** Listing of the originals, for people who look around; requests are served without it. */
export interface OriginListing {
  /**
   * Shows the objects that could be read and whose keys begin with a text, whatever their keys look like,
   * in no particular order.
   *
   * @param prefix a name and a slash, `avatars/`; or nothing, for all
   * @param visit is shown one object after another, once it is done with the one before; whether there should be more
   * @throws MediaError `ORIGIN_ERROR` if the origin fails; or `signal.reason`
   */
  list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean | Promise<boolean>,
    signal: AbortSignal,
  ): Promise<void>;
}

/** A finished result, as it is cached: enough to serve and to revalidate it. */
export interface MediaResult {
  readonly body: Uint8Array;
  readonly mimeType: string;
  readonly etag: string;
  readonly lastModified: Date | undefined;
  /** Identity of the original it was made from. */
  readonly originalEtag: string;
}

/** Identity of one state of an original. */
export interface OriginalIdentity {
  /** The source's tag, or a digest of the bytes. */
  readonly etag: string;
  readonly lastModified: Date | undefined;
}

/** An original as it was read. */
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
 * Store in which renderings outlive the process and are shared by replicas. The store may lose any of them at any time;
 * it never returns another one than was asked for, nor a part of one.
 */
export interface ResultStore {
  /**
   * Reads a rendering; returns `undefined` if it is missing or damaged.
   *
   * @param signal ends the read
   * @param onFound called with the number of bytes when the store has responded, before it sends the body
   * @throws Error if the store fails; `signal.reason`
   */
  read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined>;
  /**
   * Stores a rendering, in place of the same one.
   *
   * @throws Error if the store fails; then it has stored nothing, or the whole
   */
  write(address: ResultAddress, result: StoredResult): Promise<void>;
  /**
   * Removes all renderings whose path (`resultPath`) begins with a text: those of a user, of an
   * original, of one request in all its states.
   *
   * @param prefix of paths, not empty
   * @returns the number of removed renderings
   * @throws Error if the store fails, a `timeoutError` if it does not respond; some renderings may then be removed
   */
  remove(prefix: string): Promise<number>;
  /** Ends the background work of the store; reads and writes under way go on. */
  close(): void;
  /** Returns the fill level, if the store bounds itself and has counted its contents. */
  usage?(): StoreUsage | undefined;
}

/** Everything a renderer must know; plain data, fit to cross a process boundary. */
export interface RenderJob {
  /** Format of the original, by its magic bytes and the codec of its primary image; of a `video`, one picture is shown. */
  readonly source: SourceFormat | 'video';
  /** The animation to keep, frame by frame; `undefined`: the first frame alone. */
  readonly animation: Animation | undefined;
  /** Size of one decoded frame, not yet oriented. */
  readonly originalSize: Size;
  /** EXIF orientation to undo before anything is measured. */
  readonly orientation: Orientation;
  /** Exponent of the samples' own transfer function (sample = light ^ gamma); `undefined`: a profile's, or sRGB's. */
  readonly gamma: number | undefined;
  /** Code points of the samples of a PNG, which replace a profile and `gamma`. */
  readonly codePoints?: CodePoints | undefined;
  /** Whether sharp alone converts the samples to sRGB, as it decodes them (`isPlain` of the facts). */
  readonly isPlain?: boolean;
  /** Whether the original has been encoded with loss (`hasLoss` of the facts): a WebP of it is lossy, too (contract §3). */
  readonly isLossy?: boolean;
  /** Whether only the container is written anew (`rewrite` of its row); nothing is decoded then. */
  readonly isRewrite: boolean;
  /** `scale` to exactly `size`; `crop`: scale to cover `size`, then cut its centre out. */
  readonly resize: 'none' | 'scale' | 'crop';
  /** Whether the decoder may reduce the picture itself, where it can; the filter does the rest, or all of it. */
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

/** Heavy renders have processes of their own, of lower priority, so that light ones never wait for them. */
export const lanes = ['light', 'heavy'] as const;
export type Lane = (typeof lanes)[number];

export interface RenderBounds {
  /** Deadline of this run, in milliseconds. */
  readonly timeoutMs: number;
  /** Aborts when no request waits for the result any more: the job is stopped, and its worker with it. */
  readonly signal: AbortSignal;
}

/** An original that is not held, of which a worker gets the ranges that it asks for. */
export interface RangeReader {
  readonly sizeBytes: number;
  /**
   * Reads the bytes `[start, end)`, which lie within the original.
   *
   * @throws MediaError `MEDIA_TOO_LARGE` beyond the limits of one job, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`; or
   *   `signal.reason`
   */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array>;
}

/** A CPU slot of a lane: the place of one job at a time, which the caller holds. */
export interface RenderSlot {
  /** Whether a job would begin at once. */
  readonly isReady: boolean;
  /**
   * Runs one render to its end or its deadline.
   *
   * @param original a video by ranges, any other original as a whole
   * @returns the encoded image
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original cannot be decoded or killed its decoder,
   *   `MEDIA_TOO_LARGE` if it decodes to more than the job allows, `TRANSFORM_TIMEOUT` after the
   *   deadline (with a `WorkerLost` as cause where a worker was lost), `OVERLOADED` if no worker is there
   *   to begin it; errors of the reader; `bounds.signal.reason`; any other error is a bug of ours
   */
  render(
    original: Uint8Array | RangeReader,
    job: RenderJob,
    bounds: RenderBounds,
  ): Promise<Uint8Array>;
  /**
   * Reads the facts of a video or of sound.
   *
   * @throws as `render`
   */
  inspect(original: RangeReader, bounds: RenderBounds): Promise<MovingFacts>;
}

/** Decodes, transforms and encodes, in the slots of each lane; `Admission` hands them out. */
export interface Renderer {
  readonly slots: Readonly<Record<Lane, readonly RenderSlot[]>>;
  /** Resolves within some seconds of the start, once the decoder has been tried; without it, videos have no posters. */
  readonly videoSupport?: Promise<{ readonly isSupported: boolean }> | undefined;
}

/** The cause of an error that cost a worker: the same request would cost another one. */
export class WorkerLost extends Error {
  override readonly name = 'WorkerLost';
}

/**
 * The cause of an `ORIGIN_ERROR` where the origin responds, and knows us, but does not show an object: S3 says
 * so of a missing one to clients that may not list the bucket.
 */
export class AccessRefused extends Error {
  override readonly name = 'AccessRefused';
}

/** The cause of an `ORIGIN_ERROR` where an original is not in the state that was wanted (`OpenOptions.ifMatch`). */
export class ReplacedMeanwhile extends Error {
  override readonly name = 'ReplacedMeanwhile';
}

/** The time, injected so that tests need not wait for it. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  nowMs(): number;
}

/** The operator's log; pino's methods, as far as they are needed. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}
