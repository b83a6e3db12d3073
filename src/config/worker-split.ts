/**
 * Half of the workers, rounded down, may be taken by heavy renders. One worker alone could not serve
 * anything else meanwhile, so each lane has at least one.
 */
export function splitWorkers(workers: number): { readonly light: number; readonly heavy: number } {
  const heavy = Math.max(1, Math.floor(workers / 2));
  return { light: Math.max(1, workers - heavy), heavy };
}
