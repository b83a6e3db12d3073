import { type OriginLimits, readOriginal } from './original.ts';
import type { OriginalsBudget, Reservation } from './originals-budget.ts';
import type { OriginObject } from './ports.ts';

/** An original in memory; to be released when it is needed no more. */
export interface HeldOriginal extends Reservation {
  readonly bytes: Uint8Array;
}

/**
 * Reads an opened object to its end, into memory that is accounted for.
 *
 * @throws MediaError `OVERLOADED` if there is no room for it, and what `readOriginal` throws
 */
export async function holdOriginal(
  object: OriginObject,
  limits: OriginLimits,
  budget: OriginalsBudget,
  signal: AbortSignal,
): Promise<HeldOriginal> {
  let reservation: Reservation | undefined;
  try {
    // Larger ones are refused by the reading; there is nothing to hold for them.
    reservation = budget.reserve(Math.min(object.sizeBytes, limits.maxOriginalBytes));
    return { ...reservation, bytes: await readOriginal(object, limits, signal) };
  } catch (error) {
    object.body.destroy();
    reservation?.release();
    throw error;
  }
}
