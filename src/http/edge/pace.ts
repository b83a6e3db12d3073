import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Pace at which the client of a connection takes its responses. It measures standstill, not time: a response that waits
 * for the origin or a render is not late, and a response of 500 MiB may take hours at a modest pace.
 */
export class ReaderPace {
  readonly #minBytes: number;
  #response: ServerResponse | undefined;
  /** Since when the client has owed us `minBytes` of that response. */
  #owingSinceMs = 0;
  #takenBytesThen = 0;

  /** @param minBytes bytes that a client must take in a window not to count as stalled */
  constructor(minBytes: number) {
    this.#minBytes = minBytes;
  }

  /**
   * Returns for how long the client has stood still, by a clock in milliseconds; every sweep calls it.
   *
   * @param response the response that the connection is sending, if any
   */
  standstillMs(response: ServerResponse | undefined, socket: Socket, nowMs: number): number {
    if (response === undefined || !isUnderWay(response)) {
      this.#response = undefined;
      return 0;
    }
    const takenBytes = socket.bytesWritten - socket.writableLength;
    const isPaid = takenBytes - this.#takenBytesThen >= this.#minBytes;
    if (this.#response !== response || isPaid) {
      this.#response = response;
      this.#owingSinceMs = nowMs;
      this.#takenBytesThen = takenBytes;
    }
    return nowMs - this.#owingSinceMs;
  }
}

/** Whether bytes of a response, or its end, wait for the client. */
function isUnderWay(response: ServerResponse): boolean {
  return response.writableLength > 0 || response.writableEnded;
}
