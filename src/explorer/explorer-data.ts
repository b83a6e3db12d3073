import type { SourceFormat } from '../contract/image-formats.ts';
import type { QueryParameter } from '../contract/media-query.ts';
import type { ResourceName } from '../contract/resources.ts';

/** The contract's tables, as the page reads them: what it offers is what the service routes by. */
export interface ContractTables {
  readonly resources: readonly DescribedResource[];
  /** Kinds whose whole path is signed: external media. */
  readonly external: readonly DescribedResource[];
  /** Kinds whose URLs this explorer signs; none by default. */
  readonly signs: readonly ResourceName[];
}

/** A kind of media: a row of contract §1, with the parameters of its query. */
export interface DescribedResource {
  readonly name: ResourceName;
  readonly template: string;
  /** Empty where the path ends with a file name. */
  readonly extensions: readonly string[];
  readonly parameters: readonly QueryParameter[];
}

/** The originals that were found, as the page reads them. */
export interface OriginalsList {
  readonly shelves: readonly {
    readonly resource: ResourceName;
    readonly originals: readonly ListedOriginal[];
    /** Whether there are no others. */
    readonly isComplete: boolean;
  }[];
}

/** An original: what stands for it in the paths of its resource, and how large it is. */
export interface ListedOriginal {
  /** Value per placeholder of the template, decoded. */
  readonly values: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  /** What signs its path, where the explorer signs: parameters of the query. */
  readonly signature?: Readonly<Record<string, string>> | undefined;
}

/** What an original says of itself, without a pixel being decoded. */
export interface OriginalFacts {
  readonly format: SourceFormat;
  /** As it is seen: upright. */
  readonly widthPx: number;
  readonly heightPx: number;
  readonly frames: number;
  readonly isMoving: boolean;
  /** What its colour profile calls itself; empty where it has a profile without a name. */
  readonly profile?: string | undefined;
  readonly sizeBytes: number;
}
