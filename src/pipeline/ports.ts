import type { Readable } from 'node:stream';
import type { RenderJob } from './render/render-job.ts';

/** Bytes `first` to `last`, both included, counted from 0; without `last`, to the end. */
export interface ByteRange {
  readonly first: number;
  readonly last: number | undefined;
}

/** An object of the origin, opened: what is known of it, and its bytes still to come. */
export interface OriginObject {
  /** Size of the whole object in bytes, also where `body` is a part of it. */
  readonly sizeBytes: number;
  /** Identity of these very bytes: another content has another value. Opaque, without quotes. */
  readonly etag: string;
  readonly lastModified: Date | undefined;
  /** As stored beside the object; never trusted, the bytes decide. */
  readonly storedContentType: string | undefined;
  /** Not yet flowing; its reader's pace is the origin's pace. To destroy it ends the read. */
  readonly body: Readable;
}

/** The same, with its bytes, or those of the range that was asked for. */
export interface OriginBytes extends Omit<OriginObject, 'body'> {
  readonly bytes: Uint8Array;
}

/** How an object is read: `signal` ends the read; `range` limits the bytes, and is cut at the object's end. */
export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly range?: ByteRange | undefined;
}

/** Where the originals are. Adapters translate every foreign error into the ones named here. */
export interface Origin {
  /**
   * Opens an object by its key.
   *
   * @param key as built by `originKeyOf`: segments joined by `/`, each of them validated
   * @throws MediaError `UNKNOWN_MEDIA` if there is none, `RANGE_NOT_SATISFIABLE` if the range begins
   *   at or after its end, `ORIGIN_ERROR` if the origin fails; or `signal.reason`
   */
  read(key: string, options: ReadOptions): Promise<OriginObject>;
  /**
   * Opens an object whose bytes are to be held in memory. Small ones may come with their bytes, where a stream
   * costs more than what flows through it. An origin without this method has no such objects.
   *
   * @throws what `read` throws
   */
  readForMemory?(key: string, options: ReadOptions): Promise<OriginObject | OriginBytes>;
}

/** An original, as a listing of the storage shows it. */
export interface ListedOriginal {
  readonly key: string;
  readonly sizeBytes: number;
}

/** Which originals there are, for people who look around; requests are served without it. */
export interface OriginListing {
  /**
   * Shows the objects that could be read and whose keys begin with a text, whatever their keys look like,
   * in no particular order.
   *
   * @param prefix a name and a slash, `avatars/`; or nothing, for all
   * @param visit is shown one object after another; whether there should be more
   * @throws MediaError `ORIGIN_ERROR` if the origin fails; or `signal.reason`
   */
  list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean,
    signal: AbortSignal,
  ): Promise<void>;
}

/** A finished result, as it is cached: enough to serve and to revalidate it. */
export interface MediaResult {
  readonly body: Uint8Array;
  readonly mimeType: string;
  /** Strong entity tag, quoted. */
  readonly etag: string;
  readonly lastModified: Date | undefined;
  /** `OriginObject.etag` of the original it was made from. */
  readonly originalEtag: string;
}

/** An original as it was read. */
export interface CachedOriginal extends Pick<OriginObject, 'etag' | 'lastModified'> {
  readonly bytes: Uint8Array;
}

/** Which rendering a stored result is: any other value of any of them is another one. */
export interface ResultAddress {
  readonly originKey: string;
  /** Of the canonical request: `resultKey`. */
  readonly key: string;
  /** `OriginObject.etag` of the original it was made from. */
  readonly originalEtag: string;
  /** What made it: `releaseWithEffort`. */
  readonly release: string;
}

/** A rendering as it is stored. */
export type StoredResult = Pick<MediaResult, 'body' | 'mimeType'>;

/** How full a store is. */
export interface StoreUsage {
  readonly heldBytes: number;
  readonly maxBytes: number;
  /** Files removed to make room, since the start. */
  readonly evictions: number;
}

/**
 * Where renderings outlive the process and are shared by replicas. It may lose any of them at any
 * time; it never gives another one than was asked for, nor a part of one.
 */
export interface ResultStore {
  /**
   * Reads a rendering; `undefined` where there is none, or a damaged one.
   *
   * @param takeRoom gets the number of bytes before they are read; returns whether they may be
   * @throws Error if the store fails; `signal.reason`
   */
  read(
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined>;
  /**
   * Stores a rendering, in place of the same one if there is one.
   *
   * @throws Error if the store fails; then nothing, or the whole, is stored
   */
  write(address: ResultAddress, result: StoredResult): Promise<void>;
  /**
   * Removes all renderings whose path (`resultPath`) begins with a text: those of a user, of an
   * original, of one request in all its states.
   *
   * @param prefix of paths, not empty
   * @returns how many were removed
   * @throws Error if the store fails, `StoreStalled` if it does not respond; a part may have been removed
   */
  remove(prefix: string): Promise<number>;
  /** Ends what the store does by itself; reads and writes under way go on. */
  close(): void;
  /** How full it is, where the store bounds itself and has counted what it has. */
  usage?(): StoreUsage | undefined;
  /** Why nothing is stored at present, in words for the operator; `undefined` where all is well. */
  shortcoming?(): string | undefined;
}

/** A store has not responded in time, or still does not. */
export class StoreStalled extends Error {
  override readonly name = 'StoreStalled';
}

/** A store has failed, and says why in its cause. */
export class StoreFailed extends Error {
  override readonly name = 'StoreFailed';
}

/** Heavy renders have processes of their own, of lower priority, so that light ones never wait for them. */
export const lanes = ['light', 'heavy'] as const;
export type Lane = (typeof lanes)[number];

/** What belongs to one run of a job. */
export interface RenderOptions {
  /** The lane whose CPU slot the caller holds. */
  readonly lane: Lane;
  /** Deadline of this run, in milliseconds. */
  readonly timeoutMs: number;
  /** A later one, for a worker that has had less CPU time than that, where the system tells: the machine is busy. */
  readonly starvedTimeoutMs?: number;
  /** Aborts when no request waits for the result any more: the job is stopped, and its worker with it. */
  readonly signal: AbortSignal;
}

/** Decodes, transforms and encodes. */
export interface Renderer {
  /**
   * Runs one job to its end or its deadline. Callers hold a CPU slot of the lane.
   *
   * @returns the encoded image
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original cannot be decoded or killed its decoder,
   *   `MEDIA_TOO_LARGE` if it decodes to more than the job allows, `TRANSFORM_TIMEOUT` after the
   *   deadline (with a `WorkerLost` as cause where a worker was lost), `OVERLOADED` if no worker is there
   *   to begin it; `options.signal.reason`; any other error is a bug of ours
   */
  render(original: Uint8Array, job: RenderJob, options: RenderOptions): Promise<Uint8Array>;
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
