import { MediaError } from '../../contract/errors.ts';
import { corruptMedia } from '../../formats/byte-reader.ts';
import {
  type ByteSource,
  type DecodeOrder,
  type FrameDecoder,
  maxFrameBytes,
} from '../../formats/video/video-facts.ts';
import type { Frame } from '../frames.ts';
import { parseReply, type WorkerRequest } from '../protocol.ts';

interface Pending {
  readonly bytes: Uint8Array;
  filledBytes: number;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests to the main process in one job: for ranges of the original, and for frames; one after another. */
export class Requests implements ByteSource, FrameDecoder {
  readonly sizeBytes: number;
  readonly #send: (request: WorkerRequest) => void;
  #pending: Pending | undefined;
  /** Settles with the last request. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(sizeBytes: number, send: (request: WorkerRequest) => void) {
    this.sizeBytes = sizeBytes;
    this.#send = send;
  }

  /** @throws MediaError `UNPROCESSABLE_MEDIA` if the range is not within the original, `MEDIA_TOO_LARGE` beyond limits */
  async read(start: number, end: number): Promise<Uint8Array> {
    if (start === end) return new Uint8Array();
    const isWithin = 0 <= start && start < end && end <= this.sizeBytes;
    if (!isWithin)
      throw corruptMedia(`not there: the bytes ${start} to ${end} of ${this.sizeBytes}`);
    const bytes = await this.#ask({ kind: 'read', start, end }, end - start);
    if (bytes.length !== end - start)
      throw corruptMedia(`not there: ${bytes.length} bytes of ${end - start}`);
    return bytes;
  }

  decode(order: DecodeOrder): Promise<Uint8Array> {
    return this.#ask({ kind: 'decode', order }, maxFrameBytes(order.size));
  }

  /** Takes a piece of the reply to the last request. */
  take(frame: Frame): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    const reply = parseReply(frame);
    if (reply.kind === 'bytes') {
      pending.bytes.set(reply.bytes, pending.filledBytes);
      pending.filledBytes += reply.bytes.length;
      return;
    }
    this.#pending = undefined;
    if (reply.kind === 'end') pending.resolve(pending.bytes.subarray(0, pending.filledBytes));
    else pending.reject(new MediaError(reply.code, { cause: new Error(reply.detail) }));
  }

  /** Waits for the reply to the last request; sends no other: the main process takes a response only between two. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  #ask(request: WorkerRequest, maxBytes: number): Promise<Uint8Array> {
    const reply = this.#last.then(
      () =>
        new Promise<Uint8Array>((resolve, reject) => {
          if (this.#isClosed) throw corruptMedia('a request after the end of its job');
          const bytes = Buffer.allocUnsafeSlow(maxBytes);
          this.#pending = { bytes, filledBytes: 0, resolve, reject };
          this.#send(request);
        }),
    );
    this.#last = reply.catch(() => undefined);
    return reply;
  }
}
