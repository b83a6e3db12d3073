import {
  isMediaType,
  MAX_CAPABILITY_LENGTH,
  MAX_PART_NUMBER,
  parseOnce,
} from '../contract/signing/capability-fields.ts';
import {
  decodeBase64Url,
  decodeUtf8,
  encodeBase64Url,
  encodeUtf8,
  type SigningKeys,
  sign,
  verifies,
} from './hmac.ts';
import { findKeyFault, parseBase, quote, throwIfAny } from './values.ts';

/** Part of an S3 multipart upload. */
export interface UploadPart {
  readonly uploadId: string;
  /** 1 to 10,000. */
  readonly partNumber: number;
}

/** Upload that a capability permits. */
export interface Upload {
  /** Key of the original, such as `attachments/1/2/cat picture.png`. */
  readonly key: string;
  /** Time from which the upload can no longer begin, in complete seconds. */
  readonly expiresAt: Date;
  /** Content type to store; omit for that of the request. */
  readonly contentType?: string | undefined;
  /** Maximum size in bytes; omit for the limit of the service. */
  readonly maxBytes?: number | undefined;
  /** Whether the upload may replace an existing object; omit for `false`. */
  readonly replace?: boolean | undefined;
  /** Whether Darkroom removes metadata such as GPS coordinates; omit for `RELAY_STRIP_METADATA` of the service. */
  readonly stripMetadata?: boolean | undefined;
  /** Omit for the bucket of originals. */
  readonly bucket?: string | undefined;
  /** Omit for a complete object. */
  readonly part?: UploadPart | undefined;
}

export interface UploadCapability {
  readonly capability: string;
  /** Target of the `PUT`; without `cdnUrl`, a path. */
  readonly url: string;
}

/** Returns a capability and the URL to which the client sends the file. @throws RangeError with all validation errors */
export async function createUploadCapability({
  signingKeys,
  cdnUrl,
  ...upload
}: Upload & {
  /** Value of `RELAY_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Base URL of user content; omit to return a path. */
  readonly cdnUrl?: string | undefined;
}): Promise<UploadCapability> {
  throwIfAny('upload', findFaults(upload));
  const { key, expiresAt, contentType, maxBytes, replace, stripMetadata, bucket, part } = upload;
  const json = JSON.stringify({
    m: 'put',
    k: key,
    e: expiresAt.getTime() / 1000,
    b: bucket,
    ct: contentType,
    mb: maxBytes,
    o: replace,
    s: stripMetadata,
    u: part?.uploadId,
    p: part?.partNumber,
  });
  const payload = encodeBase64Url(encodeUtf8(json));
  const capability = `${payload}.${await sign(signingKeys, payload, 'base64url')}`;
  if (capability.length > MAX_CAPABILITY_LENGTH) {
    throwIfAny('upload', [`the capability has more than ${MAX_CAPABILITY_LENGTH} characters.`]);
  }
  const path = key.split('/').map(encodeURIComponent).join('/');
  const query = new URLSearchParams({ t: capability });
  if (part) {
    query.set('uploadId', part.uploadId);
    query.set('partNumber', String(part.partNumber));
  }
  return { capability, url: `${parseBase('cdnUrl', cdnUrl)}/v1/relay/${path}?${query}` };
}

function findFaults(upload: Upload): string[] {
  const { key, expiresAt, contentType, maxBytes, bucket, part } = upload;
  const faults: string[] = [];
  const expect = (isValid: boolean, name: string, value: unknown, expected: string): void => {
    if (!isValid) faults.push(`${name} is ${quote(value)}; expected ${expected}.`);
  };
  const keyFault = findKeyFault(key);
  expect(keyFault === undefined, 'key', key, keyFault ?? '');
  // URLs cannot name originals whose key contains the prefix `a_`.
  const isMarked = bucket === undefined && /^(?!attachments\/).*\/a_[\w-]+$/.test(key);
  expect(!isMarked, 'key', key, 'the key without the a_ of its hash');
  const isTime = expiresAt instanceof Date && Number.isSafeInteger(expiresAt.getTime() / 1000);
  expect(isTime, 'expiresAt', expiresAt, 'a date of whole seconds');
  expect(
    contentType === undefined || isMediaType(contentType),
    'contentType',
    contentType,
    'a media type',
  );
  const isSize = maxBytes === undefined || (Number.isSafeInteger(maxBytes) && maxBytes >= 0);
  expect(isSize, 'maxBytes', maxBytes, 'a number of bytes');
  if (part) {
    const { uploadId, partNumber } = part;
    expect(uploadId !== '', 'part.uploadId', uploadId, 'the id of an upload');
    const isPart = Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= MAX_PART_NUMBER;
    expect(isPart, 'part.partNumber', partNumber, `an integer from 1 to ${MAX_PART_NUMBER}`);
  }
  return faults;
}

export type VerifiedUpload =
  | { readonly verdict: 'valid'; readonly upload: Upload }
  | { readonly verdict: 'malformed' | 'mismatch' | 'expired' };

/** Checks a capability, as the service does before it compares the capability with the request. */
export async function verifyUploadCapability({
  capability,
  signingKeys,
  now = new Date(),
}: {
  readonly capability: string;
  /** Value of `RELAY_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Omit for the current time. */
  readonly now?: Date | undefined;
}): Promise<VerifiedUpload> {
  const [payload = '', signature, ...rest] = capability.split('.');
  const isLong = capability.length > MAX_CAPABILITY_LENGTH;
  if (isLong || signature === undefined || rest.length > 0) return { verdict: 'malformed' };
  if (!(await verifies(signingKeys, payload, signature, 'base64url'))) {
    return { verdict: 'mismatch' };
  }
  const bytes = decodeBase64Url(payload);
  const upload = readFields(parseOnce((bytes && decodeUtf8(bytes)) ?? ''));
  if (upload === undefined) return { verdict: 'malformed' };
  // The service ignores fractions of a second.
  const isExpired = Math.floor(now.getTime() / 1000) * 1000 >= upload.expiresAt.getTime();
  return isExpired ? { verdict: 'expired' } : { verdict: 'valid', upload };
}

function readFields(value: unknown): Upload | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { b, k, m, ct, mb, e, u, p, o, s } = value as Readonly<Record<string, unknown>>;
  const isText = (field: unknown) => field === undefined || typeof field === 'string';
  const isFlag = (field: unknown) => field === undefined || typeof field === 'boolean';
  const isInteger = (field: unknown, min: number, max = Number.MAX_SAFE_INTEGER) =>
    field === undefined ||
    (Number.isSafeInteger(field) && Number(field) >= min && Number(field) <= max);
  const isValid =
    m === 'put' &&
    typeof k === 'string' &&
    Number.isSafeInteger(e) &&
    [b, ct, u].every(isText) &&
    (typeof ct !== 'string' || isMediaType(ct)) &&
    u !== '' &&
    isInteger(mb, 0) &&
    isInteger(p, 1, MAX_PART_NUMBER) &&
    [o, s].every(isFlag) &&
    (u === undefined) === (p === undefined);
  if (!isValid) return undefined;
  return {
    key: k,
    expiresAt: new Date(Number(e) * 1000),
    contentType: ct as string | undefined,
    maxBytes: mb as number | undefined,
    replace: (o as boolean | undefined) ?? false,
    stripMetadata: s as boolean | undefined,
    bucket: b as string | undefined,
    part: u === undefined ? undefined : { uploadId: String(u), partNumber: Number(p) },
  };
}
