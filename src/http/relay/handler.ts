import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Config } from '../../config/config.ts';
import { MediaError, type RequestFault } from '../../contract/errors.ts';
import { splitTarget } from '../../contract/media-request.ts';
import {
  type CapabilityVerdict,
  type CheckedCapability,
  checkCapability,
  findRelayKeyFault,
  isMediaType,
  isRelayPath,
  type RelayCapability,
  readRelayKey,
} from '../../contract/signing/relay-capability.ts';
import type { UploadRequest, UploadService } from '../../pipeline/uploads/upload-service.ts';
import { describeTarget } from '../../telemetry/redaction.ts';
import type { Exchange } from '../exchange.ts';
import { COMMON_HEADERS } from '../head.ts';

export const RELAY_METHODS = 'PUT, OPTIONS';

const NO_STORE = { 'cache-control': 'no-store' } as const;

/** CORS-exposed headers of a response that reports the removal of metadata. */
export const EXPOSED_WITH_METADATA = `${COMMON_HEADERS['access-control-expose-headers']}, X-Metadata`;

export type RelayHandler = ReturnType<typeof createRelayHandler>;

/** Creates the handler of uploads to `/v1/relay/{key}` (contract §10, §14). @param wallClock milliseconds since 1970 */
export function createRelayHandler(
  { storage, uploads, parseOptions }: Pick<Config, 'storage' | 'uploads' | 'parseOptions'>,
  { keys }: NonNullable<Config['relay']>,
  service: Pick<UploadService, 'store'>,
  wallClock: () => number,
) {
  const readCapability = ([text, ...others]: readonly string[]): CheckedCapability => {
    if (text === undefined) return { verdict: 'missing' };
    if (others.length > 0) return { verdict: 'malformed' };
    return checkCapability(text, keys, wallClock() / 1000);
  };

  /** @throws MediaError `UNAUTHORIZED`, `ACCESS_DENIED`, `INVALID_FORM_BODY`, in this order */
  const authorise = (
    { request, state }: Exchange,
    rawPath: string,
    query: URLSearchParams,
  ): UploadRequest => {
    const checked = readCapability(query.getAll('t'));
    state.capability = checked.verdict;
    if (checked.verdict !== 'valid') throw new MediaError('UNAUTHORIZED');
    const { capability } = checked;
    const isUpload = uploads !== undefined && capability.bucket === uploads.bucket;
    const bucket = isUpload ? uploads.bucket : storage.bucket;
    const mismatch = findMismatch(capability, bucket, rawPath, query);
    if (mismatch !== undefined) {
      state.capability = mismatch;
      throw new MediaError('ACCESS_DENIED');
    }
    const message = findRelayKeyFault(rawPath, isUpload ? undefined : parseOptions.resources);
    const faults: RequestFault[] = message === undefined ? [] : [{ path: 'key', message }];
    // Content-Range declares a part, which would be stored as the complete object (RFC 9110 §14.5).
    if (request.headers['content-range'] !== undefined) faults.push(rangeFault);
    if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
    const { maxBytes, part, replaces, stripsMetadata } = capability;
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    return {
      key: capability.key,
      contentType: capability.contentType ?? contentTypeOf(request),
      maxBytes,
      sizeBytes: length === undefined ? undefined : Number(length),
      hasBody: length !== undefined || coding !== undefined,
      isEncoded: isEncoded(request),
      part,
      replaces,
      stripsMetadata,
      storage: isUpload ? 'uploads' : 'originals',
    };
  };

  return {
    isFor: (target: string) => isRelayPath(splitTarget(target)[0]),
    handle: async (exchange: Exchange): Promise<void> => {
      const { request, state } = exchange;
      const [rawPath, rawQuery] = splitTarget(exchange.target);
      state.resource = 'upload';
      state.asset = describeTarget(rawPath);
      let receivedBytes = 0;
      state.receivedBytes = receivedBytes;
      const received = new PassThrough();
      // The stream may fail before the service reads it.
      received.on('error', () => undefined);
      try {
        const upload = authorise(exchange, rawPath, new URLSearchParams(`?${rawQuery}`));
        const openBody = (): PassThrough => {
          exchange.sendContinue();
          request.on('data', (chunk: Buffer) => {
            receivedBytes += chunk.length;
            state.receivedBytes = receivedBytes;
          });
          request.once('close', () => {
            if (!request.complete) received.destroy(new DOMException('Aborted.', 'AbortError'));
          });
          return request.pipe(received);
        };
        const { etag, metadata } = await service.store(upload, openBody, exchange.signal);
        const fields = {
          ...exchange.commonHeaders,
          ...NO_STORE,
          'content-length': '0',
          ...(etag !== '' && { etag: `"${etag}"` }),
          ...(metadata !== undefined && {
            'access-control-expose-headers': EXPOSED_WITH_METADATA,
            'x-metadata': metadata,
          }),
        };
        exchange.respond(200, Object.entries(fields).flat());
      } catch (error) {
        // Discards the rest of the body, since a reset could overtake the response.
        request.unpipe(received).resume();
        if (!request.complete) exchange.endConnection();
        exchange.fail(error, NO_STORE);
      } finally {
        received.destroy();
      }
    },
  };
}

/** Finds how a valid capability differs from the request. @param bucket omit for a directory, which has no name */
function findMismatch(
  capability: RelayCapability,
  bucket: string | undefined,
  rawPath: string,
  query: URLSearchParams,
): CapabilityVerdict | undefined {
  if (bucket !== undefined && (capability.bucket ?? bucket) !== bucket) return 'other bucket';
  const key = readRelayKey(rawPath);
  if (key !== undefined && key !== capability.key) return 'other key';
  return isForPart(query, capability) ? undefined : 'other part';
}

/** Whether the query names exactly the part that the capability permits, if any. */
function isForPart(query: URLSearchParams, { part }: RelayCapability): boolean {
  const [uploadIds, partNumbers] = [query.getAll('uploadId'), query.getAll('partNumber')];
  if (part === undefined) return uploadIds.length === 0 && partNumbers.length === 0;
  const isForUpload = uploadIds.length === 1 && uploadIds[0] === part.uploadId;
  return isForUpload && partNumbers.length === 1 && partNumbers[0] === String(part.partNumber);
}

const rangeFault: RequestFault = {
  path: 'Content-Range',
  message: 'Expected the complete object, without Content-Range.',
};

function contentTypeOf({ headers }: IncomingMessage): string | undefined {
  const type = headers['content-type']?.trim();
  return type !== undefined && isMediaType(type) ? type : undefined;
}

/** Whether the body has a content coding (RFC 9110 §8.4): the coded bytes would be stored. */
function isEncoded({ headers }: IncomingMessage): boolean {
  const codings = headers['content-encoding']?.toLowerCase().split(',') ?? [];
  return codings.some((coding) => !['', 'identity'].includes(coding.trim()));
}
