import type { ServerResponse } from 'node:http';
import { isMetered, type MeteredBody } from '../response-body.ts';

/**
 * Pace at which a client takes a response. What counts is not time but standstill: a response that waits for the
 * origin or a render is not late, and one of 500 MiB may take hours at a modest pace.
 */
export class ReaderPace {
  readonly response: ServerResponse;
  readonly #minBytes: number;
  #body: MeteredBody | undefined;
  /** Since when the client has been owing us `minBytes`; `undefined` while it owes nothing. */
  #owingSinceMs: number | undefined;
  #passedBytesThen = 0;

  /** @param minBytes what a client must take not to stand still */
  constructor(response: ServerResponse, minBytes: number) {
    this.response = response;
    this.#minBytes = minBytes;
    response.on('pipe', (body: unknown) => {
      if (isMetered(body)) this.#body = body;
    });
  }

  /** For how long the client has stood still; to be asked often, by the clock's time, in milliseconds. */
  standstillMs(nowMs: number): number {
    const passedBytes = this.#body?.passedBytes ?? 0;
    if (!isUnderWay(this.response)) {
      this.#owingSinceMs = undefined;
      return 0;
    }
    const isPaid = passedBytes - this.#passedBytesThen >= this.#minBytes;
    if (this.#owingSinceMs === undefined || isPaid) {
      this.#owingSinceMs = nowMs;
      this.#passedBytesThen = passedBytes;
    }
    return nowMs - this.#owingSinceMs;
  }
}

/** Whether something of a response, or its end, is waiting for its client. */
function isUnderWay(response: ServerResponse): boolean {
  // Those that wait for the response before them have no socket yet (null).
  return response.socket !== null && (response.writableLength > 0 || response.writableEnded);
}
