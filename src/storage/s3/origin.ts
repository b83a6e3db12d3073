import { IncomingMessage } from 'node:http';
import { MediaError } from '../../contract/errors.ts';
import { type ByteRange, type Opened, type Source, StateMismatch } from '../../pipeline/ports.ts';
import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from '../aws-sdk.ts';
import { readContentRange, readLastModified } from '../origin-object.ts';
import {
  createS3Client,
  etagOf,
  findS3Cause,
  isPossibleKey,
  readS3Failure,
  type S3Bucket,
} from './client.ts';

/**
 * Opens originals in a bucket. Each read is one GET, which the SDK repeats only before the response has begun. Node's
 * parser reports a body that is shorter than its Content-Length. Not covered: objects with a `Content-Encoding` are
 * served as stored.
 *
 * @param stallTimeoutMs maximum pause of a body while its reader waits
 */
export function createS3Origin(location: S3Bucket, stallTimeoutMs: number): Source {
  const { bucket: Bucket, prefix } = location;
  const client = createS3Client(location);
  return {
    identity: 'tag',
    open: async (key, { signal, range, ifMatch }) => {
      signal.throwIfAborted();
      const Key = prefix + key;
      if (!isPossibleKey(Key)) throw new MediaError('UNKNOWN_MEDIA');
      const command = new GetObjectCommand({
        Bucket,
        Key,
        ...(range && { Range: `bytes=${range.first}-${range.last ?? ''}` }),
        ...(ifMatch !== undefined && { IfMatch: `"${ifMatch}"` }),
      });
      let response: GetObjectCommandOutput;
      try {
        response = await client.send(command, { abortSignal: signal });
      } catch (error) {
        signal.throwIfAborted();
        throw await translate(client, error, range);
      }
      const body = response.Body;
      if (!(body instanceof IncomingMessage)) throw originError('The response has no body.');
      try {
        endWhenStalled(body, stallTimeoutMs);
        return describeObject(response, body, range);
      } catch (error) {
        body.destroy();
        throw error;
      }
    },
  };
}

async function translate(
  client: S3Client,
  error: unknown,
  range: ByteRange | undefined,
): Promise<MediaError> {
  if (error instanceof MediaError) return error;
  const { name, status, code } = readS3Failure(error);
  if (name === 'NoSuchKey' || name === 'KeyTooLongError') return new MediaError('UNKNOWN_MEDIA');
  if (status === 416 && range !== undefined) return new MediaError('RANGE_NOT_SATISFIABLE');
  const failure = await findS3Cause(client, error);
  const cause =
    status === 412 ? new StateMismatch('The object was replaced.', { cause: failure }) : failure;
  return new MediaError(code === 'ETIMEDOUT' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR', { cause });
}

function describeObject(
  response: GetObjectCommandOutput,
  body: IncomingMessage,
  range: ByteRange | undefined,
): Opened {
  const { httpStatusCode: status } = response.$metadata;
  // Caches would keep a part as the complete object for a year.
  if (range === undefined && status !== 200) {
    throw originError(`The response to a request without range is HTTP ${status}.`);
  }
  const etag = etagOf(response);
  if (etag === '') throw originError('The response has no ETag.');
  if (response.ContentLength === undefined)
    throw originError('The response has no Content-Length.');
  const part = range && readPart(response, range);
  return {
    sizeBytes: part?.sizeBytes ?? response.ContentLength,
    etag,
    lastModified: readLastModified(response.LastModified),
    part,
    body,
  };
}

function readPart(response: GetObjectCommandOutput, range: ByteRange) {
  // Some servers respond to a range of an empty object with 200 and an empty body.
  if (response.ContentLength === 0) throw new MediaError('RANGE_NOT_SATISFIABLE');
  const { ContentLength, ContentRange } = response;
  const part = readContentRange(ContentRange ?? '', range, ContentLength);
  if (part === undefined) throw originError(`The response has the range ${ContentRange}.`);
  return part;
}

function originError(message: string): MediaError {
  return new MediaError('ORIGIN_ERROR', { cause: new Error(message) });
}

/** Ends a body with MediaError `ORIGIN_TIMEOUT` if no bytes arrive for a time while its reader waits. */
function endWhenStalled(body: IncomingMessage, timeoutMs: number): void {
  const { socket } = body;
  const check = (): void => {
    if (body.complete) return;
    const cause = new Error(`No bytes of the body arrived for ${timeoutMs} ms.`);
    if (body.readableLength === 0) body.destroy(new MediaError('ORIGIN_TIMEOUT', { cause }));
    // The reader is slow, not the server.
    else socket.setTimeout(timeoutMs);
  };
  socket.setTimeout(timeoutMs);
  socket.on('timeout', check);
  body.once('close', () => socket.off('timeout', check));
}
