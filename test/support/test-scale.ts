/** Whether all rows of tables and long property tests run, as in CI. By default, `npm test` runs only some. */
const isFull = process.env.TEST_SCALE === 'full';

/** Returns `full` with `TEST_SCALE=full`, and `short` by default. */
export function atScale<Value>(short: Value, full: Value): Value {
  return isFull ? full : short;
}
