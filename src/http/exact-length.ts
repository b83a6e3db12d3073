import { pipeline, type Readable, Transform } from 'node:stream';
import { MediaError } from '../media/errors.ts';

/**
 * Passes a body of the origin on, at its receiver's pace, and fails if it is shorter or longer than
 * promised: after a `Content-Length`, a client would wait for the rest for ever, or take what is too
 * much for the next answer (RFC 9112 §6.3). Node does not check it.
 *
 * @param lengthBytes what `Content-Length` says
 * @returns fails with MediaError `ORIGIN_ERROR`, also where the origin breaks off; destroying it
 *   destroys `body`
 */
export function exactLength(body: Readable, lengthBytes: number): Readable {
  let receivedBytes = 0;
  const mismatch = (): Error =>
    new Error(`The origin promised ${lengthBytes} bytes but sent ${receivedBytes}.`);
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      receivedBytes += chunk.length;
      if (receivedBytes > lengthBytes) done(mismatch());
      else done(null, chunk);
    },
    flush(done) {
      done(receivedBytes < lengthBytes ? mismatch() : null);
    },
    destroy(error, done) {
      const isForeign = error !== null && !(error instanceof MediaError);
      done(isForeign ? new MediaError('ORIGIN_ERROR', { cause: error }) : error);
    },
  });
  return pipeline(body, counter, () => undefined);
}
