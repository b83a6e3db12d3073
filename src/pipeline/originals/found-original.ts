import type { OriginObject } from '../ports.ts';
import type { OriginalIdentity } from './freshness.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';
import { type OriginAccess, openOriginal, readOriginal, readPrefix } from './read-original.ts';

/** An original in memory; to be released when it is needed no more. */
export interface HeldOriginal extends Reservation {
  readonly bytes: Uint8Array;
  /** Of these bytes: it may have changed since it was found. */
  readonly identity: OriginalIdentity;
}

/** An original that is there: what is known of it, and its bytes for whoever needs them. */
export interface FoundOriginal {
  readonly identity: OriginalIdentity;
  /** Its first bytes, where they were read. */
  readonly prefix: Uint8Array | undefined;
  /** Whether the origin has begun to send it whole. */
  readonly isOpen: boolean;
  /**
   * Reads it to its end, into memory that is accounted for.
   *
   * @throws MediaError `OVERLOADED` if there is no room for it, and what `readOriginal` throws
   */
  readonly hold: () => Promise<HeldOriginal>;
}

/** Where originals come from, and the memory they are given. */
export interface OriginalSource {
  readonly access: OriginAccess;
  readonly budget: MemoryBudget;
}

/**
 * Finds an original by opening it, on the way to be read whole. Unless it is held, it must be let go by
 * the signal.
 *
 * @throws what `openOriginal` throws
 */
export async function findByOpening(
  source: OriginalSource,
  key: string,
  signal: AbortSignal,
): Promise<FoundOriginal> {
  const object = await openOriginal(source.access, key, signal, { isForMemory: true });
  return {
    identity: identityOf(object),
    prefix: undefined,
    isOpen: true,
    hold: () => hold(object, source, signal),
  };
}

/**
 * Finds an original by its first bytes: there is no cheaper question that every origin answers rightly.
 *
 * @param prefixBytes how many
 * @throws what `readPrefix` throws
 */
export async function findByPrefix(
  source: OriginalSource,
  key: string,
  prefixBytes: number,
  signal: AbortSignal,
): Promise<FoundOriginal> {
  const { object, prefix } = await readPrefix(source.access, key, prefixBytes, signal);
  const identity = identityOf(object);
  const rest = findLater(source, key, identity, signal);
  return {
    identity,
    prefix,
    isOpen: false,
    hold: async () =>
      prefix.length === object.sizeBytes
        ? {
            ...source.budget.reserve(prefix.length),
            bytes: prefix,
            identity,
          }
        : rest.hold(),
  };
}

/** An original that is known already; the origin is asked as soon as somebody needs its bytes. */
export function findLater(
  source: OriginalSource,
  key: string,
  identity: OriginalIdentity,
  signal: AbortSignal,
): FoundOriginal {
  return {
    identity,
    prefix: undefined,
    isOpen: false,
    hold: async () => {
      const object = await openOriginal(source.access, key, signal, { isForMemory: true });
      return hold(object, source, signal);
    },
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
    return { ...reservation, bytes, identity: identityOf(object) };
  } catch (error) {
    object.body.destroy();
    reservation?.release();
    throw error;
  }
}

/** These two alone: identities are kept for long, and the object has a body, with its socket. */
function identityOf({ etag, lastModified }: OriginalIdentity): OriginalIdentity {
  return { etag, lastModified };
}
