import type { QueryParameter } from '../contract/media-query.ts';
import type { ResourceName } from '../contract/resources.ts';

/** Tables of the contract: the page offers what the service routes. */
export interface ContractTables {
  readonly resources: readonly DescribedResource[];
  /** Kinds whose whole path is signed: external media. */
  readonly external: readonly DescribedResource[];
}

/** A kind of media: a row of contract §1, with the parameters of its query. */
export interface DescribedResource {
  readonly name: ResourceName;
  readonly template: string;
  /** Empty if the path ends with a file name. */
  readonly extensions: readonly string[];
  readonly parameters: readonly QueryParameter[];
  /**
   * Words without effect, as `name=word`, by the requested format; by the empty text for the original's own format, by
   * `unchanged` for a request without parameters.
   */
  readonly idle: Readonly<Record<string, readonly string[]>>;
}

export interface OriginalsList {
  readonly shelves: readonly {
    readonly resource: ResourceName;
    readonly originals: readonly ListedOriginal[];
    readonly isComplete: boolean;
  }[];
}

export interface ListedOriginal {
  /** Value per placeholder of the template, decoded. */
  readonly values: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  /** Query parameters that sign the path, if attachments have to be signed. */
  readonly signature?: Readonly<Record<string, string>> | undefined;
}

/** Facts of an original that need no decoding of pixels. */
export interface OriginalProperties {
  readonly format: string;
  /** Auto-oriented, as displayed. */
  readonly widthPx: number;
  readonly heightPx: number;
  readonly frames: number;
  readonly isMoving: boolean;
  readonly sizeBytes: number;
  readonly durationS?: number | undefined;
  /** RFC 6381 string, of a video. */
  readonly codec?: string | undefined;
}
