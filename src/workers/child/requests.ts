import { MediaError } from '../../contract/errors.ts';
import { corruptMedia, tooLargeMedia } from '../../formats/byte-reader.ts';
import {
  type ByteSource,
  type DecodeRequest,
  type FrameDecoder,
  maxFrameBytes,
} from '../../formats/video/av-metadata.ts';
import type { Inbox } from '../inbox.ts';
import type { Packet } from '../packets.ts';
import type { Reply, WorkerRequest } from '../protocol.ts';

/** Requests of one job to the main process, one at a time: ranges of the original, and frames. */
export class Requests implements ByteSource, FrameDecoder {
  readonly sizeBytes: number;
  readonly #inbox: Inbox<Packet>;
  readonly #send: (request: WorkerRequest) => void;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(sizeBytes: number, inbox: Inbox<Packet>, send: (request: WorkerRequest) => void) {
    this.sizeBytes = sizeBytes;
    this.#inbox = inbox;
    this.#send = send;
  }

  /** @throws MediaError `UNPROCESSABLE_MEDIA` for a range outside the original, `MEDIA_TOO_LARGE` beyond limits */
  async read(start: number, end: number): Promise<Uint8Array> {
    if (start === end) return new Uint8Array();
    const isWithin = 0 <= start && start < end && end <= this.sizeBytes;
    if (!isWithin) throw this.#outside(start, end);
    const bytes = await this.#request({ kind: 'read', start, end }, end - start);
    if (bytes.length !== end - start) throw this.#outside(start, end);
    return bytes;
  }

  decode(request: DecodeRequest): Promise<Uint8Array> {
    return this.#request({ kind: 'decode', request }, maxFrameBytes(request.size));
  }

  /** Waits for the last reply, and rejects further requests: the response must follow the reply. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  #request(request: WorkerRequest, maxBytes: number): Promise<Uint8Array> {
    const reply = this.#last.then(() => {
      if (this.#isClosed) throw corruptMedia('a request after the end of the job');
      const bytes = Buffer.allocUnsafeSlow(maxBytes);
      this.#send(request);
      return this.#receive(bytes);
    });
    this.#last = reply.catch(() => undefined);
    return reply;
  }

  async #receive(bytes: Buffer): Promise<Uint8Array> {
    let filledBytes = 0;
    let isTooLarge = false;
    for (;;) {
      const { header, body } = await this.#inbox.next();
      const reply = header as Reply;
      if (reply.kind === 'refused') {
        throw new MediaError(reply.code, { cause: new Error(reply.detail) });
      }
      if (reply.kind === 'end') {
        if (isTooLarge) throw tooLargeMedia('Out of memory for the reply.');
        return bytes.subarray(0, filledBytes);
      }
      isTooLarge ||= body === undefined;
      if (body === undefined) continue;
      bytes.set(body, filledBytes);
      filledBytes += body.length;
    }
  }

  #outside(start: number, end: number): MediaError {
    const range = `${start}–${end - 1}`;
    return corruptMedia(`range ${range} is outside the original (${this.sizeBytes} bytes)`);
  }
}
