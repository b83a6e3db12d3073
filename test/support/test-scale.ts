/**
 * Whether everything is tried: every row of a table and the long runs of properties, as CI does with
 * `TEST_SCALE=full`. Otherwise a newcomer waits for a part of it.
 */
const isFull = process.env.TEST_SCALE === 'full';

/** Chooses how many cases, or which, are tried. */
export function atScale<Value>(short: Value, full: Value): Value {
  return isFull ? full : short;
}
