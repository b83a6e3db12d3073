/**
 * Limits of one client, in time, bytes and numbers. None is a setting: nothing of it
 * depends on who runs the service, but for the number of connections, which is `MAX_CONNECTIONS`.
 */
export const clientLimits = {
  /** From a connection to its end of the TLS handshake. */
  handshakeTimeoutMs: 10_000,
  /**
   * From the first byte of a request, of the first one from the connection, to the end of its head, which fits into
   * one packet or a few: ten seconds are three retransmissions of each (RFC 6298: after 1, 2 and 4 s).
   */
  headTimeoutMs: 10_000,
  /** The same to the end of its body; that of an upload has a pace instead. */
  requestTimeoutMs: 20_000,
  /**
   * From a response to the next request of a connection. The proxy in front keeps idle connections for 60 s. It must
   * be the first to let go: a request that it sends while we close the connection gets no response.
   */
  keepAliveTimeoutMs: 72_000,
  /**
   * From our last word to the end of a connection that the client does not close; for what it is still sending. A
   * connection that is closed over unread bytes is reset, and the reset may overtake our response (RFC 9112 §9.6).
   */
  lingerTimeoutMs: 2_000,
  /**
   * In each such time a client must take `slowReaderMinBytes` of its response, or the rest of it. It is nginx's
   * send_timeout. Shorter would cut off honest clients: the system lets us write on when a third of its buffer
   * (4 MiB at most) is free, so on loopback a client of 20 kB/s was seen to take nothing for 58 s, and then 1.4 MB
   * at once.
   */
  slowReaderWindowMs: 60_000,
  /** At least 1 KiB/s, against those that take a byte a second. */
  slowReaderMinBytes: 65_536,
  /**
   * The window while three quarters of the requests are under way that may be: when others are about to be refused,
   * a client that stands still goes sooner.
   */
  crowdedReaderWindowMs: 10_000,
  /** Interval between two sweeps that check the periods above. */
  sweepIntervalMs: 1_000,

  /**
   * The request line and all header fields. The longest URL of a stored original has some 900 bytes, the longest opaque
   * one of external media 11 kB; browsers send 1 to 4 kB of fields. Node's own limit.
   */
  maxHeadBytes: 16_384,
  /** The same of an upload: a capability has up to 16 384 characters (contract §10). */
  maxUploadHeadBytes: 24_576,
  maxHeaderFields: 100,
  /** Bytes of a request's body. Only uploads have one; a body that a client sends all the same is read and discarded. */
  maxBodyBytes: 1_048_576,
  /**
   * Requests that have not had their response yet, to its last byte; half as many as connections, if that is less.
   * A response that its client does not read was seen to hold 0.3 to 0.5 MB here.
   */
  maxRequests: 2_048,
  /** The same of one connection. Few clients pipeline at all. */
  maxPipelinedRequests: 32,
};

/** Limits of clients; tests have others than the usual ones. */
export type ClientLimits = Readonly<typeof clientLimits>;
