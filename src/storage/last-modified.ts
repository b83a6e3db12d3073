/**
 * The time of an original's last change, as it may be told; `undefined` for one in the future, which must not
 * be (RFC 9110 §8.8.2.1), and for one before 1970, which no storage means.
 */
export function readLastModified(date: Date | undefined): Date | undefined {
  const timeMs = date?.getTime() ?? Number.NaN;
  return timeMs >= 0 && timeMs <= Date.now() ? date : undefined;
}
