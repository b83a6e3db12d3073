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
  /** From a connection to its first request, where no other timeout holds: HTTP/2. */
  readonly silenceTimeoutMs: number;
  /** From an answer to the next request of a connection. */
  readonly keepAliveTimeoutMs: number;
  /** From our last word to the end of a connection that the client does not close. */
  readonly lingerTimeoutMs: number;
  /** In each such time a client must take `slowReaderMinBytes` of its answer, or the rest of it. */
  readonly slowReaderWindowMs: number;
  readonly slowReaderMinBytes: number;
  /** The same while three quarters of the requests are under way that may be. */
  readonly crowdedReaderWindowMs: number;
  /** How often the above are looked at. */
  readonly sweepIntervalMs: number;

  /** The request line and all header fields. */
  readonly maxHeadBytes: number;
  readonly maxHeaderFields: number;
  /** Of a request's body, which nobody reads. */
  readonly maxBodyBytes: number;
  /** Requests that are not answered yet, to the last byte; half as many as connections, if that is less. */
  readonly maxRequests: number;
  /** The same of one connection of HTTP/1.1. */
  readonly maxPipelinedRequests: number;
  /** The same of one connection of HTTP/2. */
  readonly maxStreams: number;
}

export const clientLimits: ClientLimits = {
  // A head fits into one packet or a few. Ten seconds are three retransmissions of each (RFC 6298: after
  // 1, 2 and 4 s).
  handshakeTimeoutMs: 10_000,
  headTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  silenceTimeoutMs: 20_000,
  // The proxy in front keeps idle connections for 60 s. It must be the first to let go: whoever is asked
  // over a connection that he has just closed cannot answer.
  keepAliveTimeoutMs: 72_000,
  // For what the client is still sending: a connection that is closed over unread bytes is reset, and the
  // reset may overtake our answer (RFC 9112 §9.6).
  lingerTimeoutMs: 2_000,
  // nginx's send_timeout. Shorter would cut off honest clients: the system tells us of room in its buffer
  // (4 MiB at most) when a third of it is free, so on loopback a client of 20 kB/s was seen to take
  // nothing for 58 s, and then 1.4 MB at once. At least 1 KiB/s, against those who take a byte a second.
  slowReaderWindowMs: 60_000,
  slowReaderMinBytes: 65_536,
  // When somebody else is about to be refused for want of room, whoever stands still goes sooner.
  crowdedReaderWindowMs: 10_000,
  sweepIntervalMs: 1_000,

  // The longest URL of ours has some 900 bytes; browsers send 1 to 4 kB of fields. Node's own limit.
  maxHeadBytes: 16_384,
  maxHeaderFields: 100,
  // No request of ours has a body. What a few clients send all the same is read and thrown away.
  maxBodyBytes: 1_048_576,
  // Of an answer that its client does not read, 0.3 to 0.5 MB were seen to be held in here.
  maxRequests: 2_048,
  // Few clients pipeline at all. A browser has up to 100 streams, which RFC 9113 §6.5.2 recommends as the
  // least.
  maxPipelinedRequests: 32,
  maxStreams: 100,
};
