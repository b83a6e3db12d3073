import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import { siteError } from '../site-failure.ts';
import { takeFirst } from './read-original.ts';

/**
 * Takes the first bytes of a body: as many as are asked for, some more if they come together, or all of a shorter one.
 *
 * @param timeoutMs time for them, in milliseconds
 * @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`; or `signal.reason`
 */
export function peekSite(
  body: Readable,
  count: number,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const onTimeout = (): MediaError =>
    siteError(`No ${count} bytes in ${timeoutMs} ms.`, { reason: 'time' });
  return withDeadline(timeoutMs, signal, onTimeout, () =>
    takeFirst(body, count).catch((error: unknown) => {
      throw siteBodyError(error);
    }),
  );
}

/**
 * A body that is passed on at its reader's pace: the first bytes, which were looked at, and the rest; cut off where it
 * becomes too long. To destroy it ends the transfer.
 */
export class SiteStream extends Transform {
  /** How much has come, and gone; who counts what was sent asks for it. */
  passedBytes = 0;
  readonly #maxBytes: number;

  constructor(prefix: Uint8Array, body: Readable, maxBytes: number) {
    super();
    this.#maxBytes = maxBytes;
    this.passedBytes = prefix.length;
    if (prefix.length > 0) this.push(prefix);
    if (body.readableEnded) this.end();
    else pipeline(body, this, () => undefined);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.passedBytes += chunk.length;
    if (this.passedBytes <= this.#maxBytes) done(null, chunk);
    else done(new MediaError('MEDIA_TOO_LARGE'));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    done(error === null || error instanceof MediaError ? error : siteBodyError(error));
  }
}

/** What a body has failed with. undici's name for one that has stood still is known here: it has no other sign. */
export function siteBodyError(cause: unknown): MediaError {
  const isLate = cause instanceof Error && cause.name === 'BodyTimeoutError';
  const reason = isLate ? 'time' : 'response';
  return siteError('The body has not come whole.', { reason, cause });
}
