import type { StageTiming } from '../../pipeline/cache-outcome.ts';

/**
 * The `Server-Timing` header (W3C Server Timing §2): `store;dur=0.021, origin;dur=12.5`, in the
 * order given, in milliseconds to the microsecond; `undefined` when no room was entered. A
 * duration that no clock can measure (negative, NaN) is told as 0.
 */
export function formatServerTiming(timings: readonly StageTiming[]): string | undefined {
  if (timings.length === 0) return undefined;
  return timings.map(({ room, durationMs }) => `${room};dur=${formatMs(durationMs)}`).join(', ');
}

function formatMs(durationMs: number): string {
  const measuredMs = durationMs > 0 ? Math.min(durationMs, Number.MAX_SAFE_INTEGER) : 0;
  // Rounded, so that no exponent is left: 1e-7 has no place in the header's grammar.
  return String(Math.round(measuredMs * 1000) / 1000);
}
