import type { QueryParameter } from '../contract/media-query.ts';
import type { ResourceName } from '../contract/resources.ts';

/** Tables of the contract, so that the page offers exactly what the service accepts. */
export interface ContractTables {
  readonly resources: readonly DescribedResource[];
  /** Kinds with signed paths: external media. */
  readonly external: readonly DescribedResource[];
}

/** Kind of media: a row of contract §1, with the parameters of its query. */
export interface DescribedResource {
  readonly name: ResourceName;
  readonly template: string;
  /** Empty if the path ends with a file name. */
  readonly extensions: readonly string[];
  readonly parameters: readonly QueryParameter[];
  /** Parameters without effect, as `name=value`, by requested format: '' if none, `unchanged` without any parameters. */
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
  /** Decoded values by placeholder of the template. */
  readonly values: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  /** Query parameters with the signature, if attachments need one. */
  readonly signature?: Readonly<Record<string, string>> | undefined;
}

/** Properties of an original that are known without decoding pixels. */
export interface OriginalProperties {
  readonly format: string;
  /** After auto-orientation. */
  readonly widthPx: number;
  readonly heightPx: number;
  readonly frames: number;
  readonly isMoving: boolean;
  readonly sizeBytes: number;
  readonly durationS?: number | undefined;
  /** RFC 6381 string of a video. */
  readonly codec?: string | undefined;
}
