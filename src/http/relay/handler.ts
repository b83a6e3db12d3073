import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { splitTarget } from '../../contract/media-request.ts';
import type { Resources } from '../../contract/resources.ts';
import {
  type CapabilityVerdict,
  findRelayKeyFault,
  isMediaType,
  isRelayPath,
  type JudgedCapability,
  judgeCapability,
  type RelayCapability,
  readRelayKey,
} from '../../contract/signing/relay-capability.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import {
  type UploadLimits,
  type UploadOrder,
  UploadService,
  type UploadServiceParts,
} from '../../pipeline/uploads/upload-service.ts';
import { describeTarget } from '../../telemetry/redaction.ts';
import type { Exchange } from '../exchange.ts';
import { COMMON_HEADERS } from '../head.ts';

/** Methods of the relay that get more than a refusal. */
export const RELAY_METHODS = 'PUT, OPTIONS';

/** Caches keep no response to an upload. */
const NO_STORE = { 'cache-control': 'no-store' } as const;

/** Headers that pages of other sites may read from a response that reports the removal of metadata. */
export const EXPOSED_WITH_METADATA = `${COMMON_HEADERS['access-control-expose-headers']}, X-Metadata`;

interface RelayParts extends Omit<UploadServiceParts, 'limits' | 'stripsMetadata'> {
  /** Unix time, in milliseconds. */
  readonly wallClock: () => number;
}

/** Stores uploads to `/v1/relay/{key}` (contract §10, §14). */
export class RelayHandler {
  readonly uploads: UploadService;
  readonly #keys: SigningKeys;
  readonly #wallClock: () => number;
  /** Bucket of the originals; `undefined`: they are in a folder, which has no name in capabilities. */
  readonly #bucket: string | undefined;
  /** Bucket of uploads that no public route reads; `undefined`: there is none. */
  readonly #uploadsBucket: string | undefined;
  readonly #resources: Resources;

  constructor(
    { storage, uploads, reading }: Pick<Config, 'storage' | 'uploads' | 'reading'>,
    { keys, limits, stripsMetadata }: NonNullable<Config['relay']>,
    { wallClock, ...parts }: RelayParts,
    otherLimits: Partial<UploadLimits> = {},
  ) {
    const all = { ...parts, stripsMetadata, limits: { ...limits, ...otherLimits } };
    this.uploads = new UploadService(all);
    this.#keys = keys;
    this.#wallClock = wallClock;
    this.#bucket = storage.bucket;
    this.#uploadsBucket = uploads?.bucket;
    this.#resources = reading.resources;
  }

  isFor(target: string): boolean {
    return isRelayPath(splitTarget(target)[0]);
  }

  async handle(exchange: Exchange): Promise<void> {
    const { request } = exchange;
    const [rawPath, rawQuery] = splitTarget(exchange.target);
    const { facts } = exchange;
    facts.resource = 'upload';
    facts.key = describeTarget(rawPath);
    let receivedBytes = 0;
    facts.receivedBytes = receivedBytes;
    const received = new PassThrough();
    // A reader that comes later still gets the error.
    received.on('error', () => undefined);
    try {
      const order = this.#authorise(exchange, rawPath, new URLSearchParams(`?${rawQuery}`));
      const openBody = (): PassThrough => {
        exchange.sendContinue();
        request.on('data', (chunk: Buffer) => {
          receivedBytes += chunk.length;
          facts.receivedBytes = receivedBytes;
        });
        request.once('close', () => {
          if (!request.complete) received.destroy(new DOMException('Cut off.', 'AbortError'));
        });
        return request.pipe(received);
      };
      const { etag, metadata } = await this.uploads.store(order, openBody, exchange.signal);
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
      // The rest of the body is read and discarded, so that no reset overtakes the response.
      request.unpipe(received).resume();
      if (!request.complete) exchange.endConnection();
      exchange.fail(error, NO_STORE);
    } finally {
      received.destroy();
    }
  }

  /** @throws MediaError `UNAUTHORIZED`, `ACCESS_DENIED`, `INVALID_FORM_BODY`, in this order */
  #authorise({ request, facts }: Exchange, rawPath: string, query: URLSearchParams): UploadOrder {
    const judged = this.#judge(query.getAll('t'));
    facts.capability = judged.verdict;
    if (judged.verdict !== 'valid') throw new MediaError('UNAUTHORIZED');
    const { capability } = judged;
    const isUpload = this.#uploadsBucket !== undefined && capability.bucket === this.#uploadsBucket;
    const otherUse = this.#findOtherUse(capability, isUpload, rawPath, query);
    if (otherUse !== undefined) {
      facts.capability = otherUse;
      throw new MediaError('ACCESS_DENIED');
    }
    const message = findRelayKeyFault(rawPath, isUpload ? undefined : this.#resources);
    const keyFaults = message === undefined ? [] : [{ path: 'key', message }];
    const faults = [...keyFaults];
    // A part would be stored as the whole (RFC 9110 §14.5).
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
  }

  #judge([text, ...others]: readonly string[]): JudgedCapability {
    if (text === undefined) return { verdict: 'missing' };
    if (others.length > 0) return { verdict: 'malformed' };
    return judgeCapability(text, this.#keys, this.#wallClock() / 1000);
  }

  /** Finds what a valid capability is for, if it is not for this upload. */
  #findOtherUse(
    capability: RelayCapability,
    isUpload: boolean,
    rawPath: string,
    query: URLSearchParams,
  ): CapabilityVerdict | undefined {
    const bucket = this.#bucket;
    const key = readRelayKey(rawPath);
    const isForBucket =
      isUpload || bucket === undefined || (capability.bucket ?? bucket) === bucket;
    if (!isForBucket) return 'other bucket';
    if (key !== undefined && key !== capability.key) return 'other key';
    return isForPart(query, capability) ? undefined : 'other part';
  }
}

/** Whether a query names the part that the capability is for, or no part if the capability is for the whole. */
function isForPart(query: URLSearchParams, { part }: RelayCapability): boolean {
  const [uploadIds, partNumbers] = [query.getAll('uploadId'), query.getAll('partNumber')];
  if (part === undefined) return uploadIds.length === 0 && partNumbers.length === 0;
  const isForUpload = uploadIds.length === 1 && uploadIds[0] === part.uploadId;
  return isForUpload && partNumbers.length === 1 && partNumbers[0] === String(part.partNumber);
}

const rangeFault = {
  path: 'Content-Range',
  message: 'Expected the whole object, and no Content-Range.',
};

function contentTypeOf({ headers }: IncomingMessage): string | undefined {
  const type = headers['content-type']?.trim();
  return type !== undefined && isMediaType(type) ? type : undefined;
}

/** Whether the body has a content coding (RFC 9110 §8.4), which would be stored with it. */
function isEncoded({ headers }: IncomingMessage): boolean {
  const codings = headers['content-encoding']?.toLowerCase().split(',') ?? [];
  return codings.some((coding) => !['', 'identity'].includes(coding.trim()));
}
