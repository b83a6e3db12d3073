/**
 * What one client may take of the service, in time, bytes and numbers. None is a setting: nothing of it
 * depends on who runs the service, but for the number of connections, which is `MAX_CONNECTIONS`.
 */
export interface ClientLimits {
  /** From a connection to its end of the TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /** From the first byte of a request, of the first one from the connection, to the end of its head. */
  readonly headTimeoutMs: number;
  /** The same to the end of its body. */
  readonly requestTimeoutMs: number;
  /** From a response to the next request of a connection. */
  readonly keepAliveTimeoutMs: number;
  /** From our last word to the end of a connection that the client does not close. */
  readonly lingerTimeoutMs: number;
  /** In each such time a client must take `slowReaderMinBytes` of its response, or the rest of it. */
  readonly slowReaderWindowMs: number;
  readonly slowReaderMinBytes: number;
  /** The same while three quarters of the requests are under way that may be. */
  readonly crowdedReaderWindowMs: number;
  /** How often the above are looked at. */
  readonly sweepIntervalMs: number;

  /** The request line and all header fields. */
  readonly maxHeadBytes: number;
  readonly maxHeaderFields: number;
  /** Of a request's body, which is read over and thrown away. */
  readonly maxBodyBytes: number;
  /** Requests that have not had their response yet, to its last byte; half as many as connections, if that is less. */
  readonly maxRequests: number;
  /** The same of one connection. */
  readonly maxPipelinedRequests: number;
}

export const clientLimits: ClientLimits = {
  // A head fits into one packet or a few. Ten seconds are three retransmissions of each (RFC 6298: after
  // 1, 2 and 4 s).
  handshakeTimeoutMs: 10_000,
  headTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  // The proxy in front keeps idle connections for 60 s. It must be the first to let go: a request that it
  // sends while we close the connection gets no response.
  keepAliveTimeoutMs: 72_000,
  // For what the client is still sending: a connection that is closed over unread bytes is reset, and the
  // reset may overtake our response (RFC 9112 §9.6).
  lingerTimeoutMs: 2_000,
  // nginx's send_timeout. Shorter would cut off honest clients: the system tells us of room in its buffer
  // (4 MiB at most) when a third of it is free, so on loopback a client of 20 kB/s was seen to take
  // nothing for 58 s, and then 1.4 MB at once. At least 1 KiB/s, against those that take a byte a second.
  slowReaderWindowMs: 60_000,
  slowReaderMinBytes: 65_536,
  // When others are about to be refused for want of room, a client that stands still goes sooner.
  crowdedReaderWindowMs: 10_000,
  sweepIntervalMs: 1_000,

  // The longest URL of ours has some 900 bytes; browsers send 1 to 4 kB of fields. Node's own limit.
  maxHeadBytes: 16_384,
  maxHeaderFields: 100,
  // No request of ours has a body. What a few clients send all the same is read and thrown away.
  maxBodyBytes: 1_048_576,
  // Of a response that its client does not read, 0.3 to 0.5 MB were seen to be held in here.
  maxRequests: 2_048,
  // Few clients pipeline at all.
  maxPipelinedRequests: 32,
};
