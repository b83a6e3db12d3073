/** What came of listing a storage, for those who look whether in it is what they think. */
export type StorageListing =
  | {
      readonly kind: 'listed';
      /** As the origin would be asked for them; not all of them need to be keys of originals. */
      readonly keys: readonly string[];
      /** Whether there are more. */
      readonly isPart: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly cause: unknown;
      /** Whether it is for the lack of a right. */
      readonly isDenied: boolean;
    };
