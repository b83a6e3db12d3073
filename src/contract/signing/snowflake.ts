/** The service's epoch: the start of 2015, in milliseconds since 1970 (docs/attachments.md). */
const EPOCH_MS = 1_420_070_400_000;

/** Bits of a snowflake below its time: worker, process and sequence. */
const BITS_BELOW_TIME = 22n;

/**
 * When an entity was created, in milliseconds since 1970.
 *
 * @param snowflake its decimal digits
 */
export function timeOfSnowflakeMs(snowflake: string): number {
  return Number(BigInt(snowflake) >> BITS_BELOW_TIME) + EPOCH_MS;
}
