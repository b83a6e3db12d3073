/** Milliseconds since 1970, in fractions, comparable between the processes of one machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
