/** Connections and requests of the media listener, to be watched. Sums are since the start. */
export interface ConnectionCounters {
  readonly connections: number;
  readonly maxConnections: number;
  /** Requests under way, and how many there may be; more are refused, hits included. */
  readonly requests: number;
  readonly maxRequests: number;
  /** Clients that were cut off: too slow to take their answers; idle, in place of new ones; for want of room. */
  readonly slowReaders: number;
  readonly evicted: number;
  readonly turnedAway: number;
}
