/** URLs of the upload relay (contract §10): `/v1/relay/{key}?t={capability}`. A capability permits one upload. */

import { z } from 'zod';
import { decodeSegment, findKeyFault, isOriginKey, unmarkedKeyOf } from '../media-path.ts';
import type { Resources } from '../resources.ts';
import type { SignatureVerdict } from './attachment-signature.ts';
import {
  isMediaType,
  MAX_CAPABILITY_LENGTH,
  MAX_PART_NUMBER,
  parseOnce,
} from './capability-fields.ts';
import { decodeBase64Url } from './external-path.ts';
import type { SigningKeys } from './signing-keys.ts';

export { isMediaType, MAX_CAPABILITY_LENGTH } from './capability-fields.ts';

export interface UploadPartId {
  readonly uploadId: string;
  readonly partNumber: number;
}

export interface RelayCapability {
  /** `undefined` for the bucket of originals. */
  readonly bucket: string | undefined;
  /** Not validated as an origin key. */
  readonly key: string;
  readonly contentType: string | undefined;
  readonly maxBytes: number | undefined;
  readonly expiresAtSeconds: number;
  readonly part: UploadPartId | undefined;
  readonly replaces: boolean;
  /** Whether metadata is removed (contract §16); `undefined` for the configured default. */
  readonly stripsMetadata: boolean | undefined;
}

/** Known fields; ignores others, like JSON Web Tokens. */
const fields = z
  .object({
    b: z.string().optional(),
    k: z.string(),
    m: z.literal('put'),
    ct: z.string().refine(isMediaType).optional(),
    mb: z.int().nonnegative().optional(),
    e: z.int(),
    u: z.string().min(1).optional(),
    p: z.int().min(1).max(MAX_PART_NUMBER).optional(),
    o: z.boolean().optional(),
    s: z.boolean().optional(),
  })
  .refine(({ u, p }) => (u === undefined) === (p === undefined));

/** Verdict on a capability, for the log only. The last three are for valid capabilities that permit another upload. */
export type CapabilityVerdict = SignatureVerdict | 'other bucket' | 'other key' | 'other part';

export type CheckedCapability =
  | { readonly verdict: 'valid'; readonly capability: RelayCapability }
  | { readonly verdict: Exclude<SignatureVerdict, 'valid'> };

/**
 * Verifies the signature of a capability, then parses it. It is malformed if it is too long, not in canonical base64url, or
 * has invalid or repeated fields.
 *
 * @param nowSeconds Unix time
 */
export function checkCapability(
  text: string,
  signingKeys: SigningKeys,
  nowSeconds: number,
): CheckedCapability {
  if (text.length > MAX_CAPABILITY_LENGTH) return { verdict: 'malformed' };
  const [payload = '', signature, ...rest] = text.split('.');
  if (signature === undefined || rest.length > 0) return { verdict: 'malformed' };
  if (!signingKeys.verifies(payload, signature, 'base64url')) return { verdict: 'mismatch' };
  const json = decodeBase64Url(payload);
  const parsed = json === undefined ? undefined : fields.safeParse(parseOnce(json));
  if (parsed?.success !== true) return { verdict: 'malformed' };
  const { b, k, ct, mb, e, u, p, o, s } = parsed.data;
  if (nowSeconds >= e) return { verdict: 'expired' };
  const capability = {
    bucket: b,
    key: k,
    contentType: ct,
    maxBytes: mb,
    expiresAtSeconds: e,
    part: u === undefined || p === undefined ? undefined : { uploadId: u, partNumber: p },
    replaces: o ?? false,
    stripsMetadata: s,
  };
  return { verdict: 'valid', capability };
}

export const RELAY_PREFIX = '/v1/relay/';

export function isRelayPath(rawPath: string): boolean {
  return rawPath.startsWith(RELAY_PREFIX) && rawPath.length > RELAY_PREFIX.length;
}

export function readRelayKey(rawPath: string): string | undefined {
  const segments = rawPath.slice(RELAY_PREFIX.length).split('/').map(decodeSegment);
  return segments.includes(undefined) ? undefined : segments.join('/');
}

/**
 * Returns the error in the key of a path, as a sentence; `undefined` if the key is valid.
 *
 * @param resources `undefined` for the uploads bucket (contract §14), which allows any key
 */
export function findRelayKeyFault(
  rawPath: string,
  resources: Resources | undefined,
): string | undefined {
  const key = readRelayKey(rawPath);
  if (key === undefined) return 'Expected valid percent-encoded UTF-8.';
  if (resources === undefined) return findKeyFault(key);
  // An encoded slash is part of a segment, which origin keys do not allow.
  const hasEncodedSlash =
    key.split('/').length !== rawPath.slice(RELAY_PREFIX.length).split('/').length;
  if (hasEncodedSlash || !isOriginKey(key, resources)) {
    return 'Expected the key of an original, such as avatars/1/ab12.';
  }
  const unmarkedKey = unmarkedKeyOf(key, resources);
  return unmarkedKey && `Expected the key without the a_ of its hash: ${unmarkedKey}`;
}
