import { type OriginAccess, openOriginal, readOriginal, readPrefix } from './original.ts';
import type { OriginalsBudget, Reservation } from './originals-budget.ts';
import type { OriginObject } from './ports.ts';

/** Which original it is, and in which state. */
export type OriginalIdentity = Pick<OriginObject, 'etag' | 'lastModified'>;

/** An original in memory; to be released when it is needed no more. */
export interface HeldOriginal extends Reservation {
  readonly bytes: Uint8Array;
  /** Of these bytes: it may have changed since it was found. */
  readonly identity: OriginalIdentity;
}

/** An original that is there: what is known of it, and its bytes for whoever needs them. */
export interface FoundOriginal {
  readonly identity: OriginalIdentity;
  /**
   * Reads it to its end, into memory that is accounted for.
   *
   * @throws MediaError `OVERLOADED` if there is no room for it, and what `readOriginal` throws
   */
  readonly hold: () => Promise<HeldOriginal>;
  /** Lets go of the origin, where nobody needs the bytes. */
  readonly discard: () => void;
}

/** Where originals come from, and the memory they are given. */
export interface OriginalSource {
  readonly access: OriginAccess;
  readonly budget: OriginalsBudget;
}

/**
 * Finds an original by opening it, on the way to be read whole.
 *
 * @throws what `openOriginal` throws
 */
export async function findOriginal(
  source: OriginalSource,
  key: string,
  signal: AbortSignal,
): Promise<FoundOriginal> {
  const object = await openOriginal(source.access, key, signal);
  return {
    identity: object,
    hold: () => hold(object, source, signal),
    discard: () => void object.body.destroy(),
  };
}

/** Enough for the first frames of an animation, in bytes. */
const PREFIX_BYTES = 256 * 1024;

/**
 * Finds an original by its first bytes, which may tell that there is no use in reading the others.
 *
 * @param judge throws if so; then `hold` does
 * @throws what `openOriginal` throws
 */
export async function findOriginalByPrefix(
  source: OriginalSource,
  key: string,
  signal: AbortSignal,
  judge: (prefix: Uint8Array) => void,
): Promise<FoundOriginal> {
  const { access, budget } = source;
  const { object, prefix } = await readPrefix(access, key, PREFIX_BYTES, signal);
  return {
    identity: object,
    hold: async () => {
      judge(prefix);
      if (prefix.length === object.sizeBytes) {
        return { ...budget.reserve(prefix.length), bytes: prefix, identity: object };
      }
      return hold(await openOriginal(access, key, signal), source, signal);
    },
    discard: () => undefined,
  };
}

async function hold(
  object: OriginObject,
  { access: { limits }, budget }: OriginalSource,
  signal: AbortSignal,
): Promise<HeldOriginal> {
  let reservation: Reservation | undefined;
  try {
    // Larger ones are refused by the reading; there is nothing to hold for them.
    reservation = budget.reserve(Math.min(object.sizeBytes, limits.maxOriginalBytes));
    const bytes = await readOriginal(object, limits, signal);
    return { ...reservation, bytes, identity: object };
  } catch (error) {
    object.body.destroy();
    reservation?.release();
    throw error;
  }
}
