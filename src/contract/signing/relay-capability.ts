/**
 * Capabilities of the upload relay (contract §10): a text in a URL that permits one upload, and is all that
 * authorises it.
 */

import { z } from 'zod';
import { decodeBase64Url } from './external-path.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Longest capability, in characters. */
export const MAX_CAPABILITY_LENGTH = 16_384;

/** One part of a multipart upload of S3. */
export interface UploadPartId {
  readonly uploadId: string;
  readonly partNumber: number;
}

/** What a capability permits. */
export interface RelayCapability {
  /** `undefined`: whichever the service stores into. */
  readonly bucket: string | undefined;
  /** As it was signed; it need not be the key of an original. */
  readonly key: string;
  /** To be stored; `undefined`: that of the request. */
  readonly contentType: string | undefined;
  readonly maxBytes: number | undefined;
  /** The first second in which it is worth nothing any more, in Unix time. */
  readonly expiresAtSeconds: number;
  readonly part: UploadPartId | undefined;
  /** Whether it may replace an object that is there. */
  readonly replaces: boolean;
}

/** A media type with its parameters, as it can be sent in a header (RFC 9110 §8.3.1). */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?:[ \t]*;[ -~]*)?$/;

/** Whether a text is a media type that can be stored. */
export function isMediaType(text: string): boolean {
  return text.length <= 255 && MEDIA_TYPE.test(text);
}

/** S3 counts parts from 1, and takes so many (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */
const MAX_PART_NUMBER = 10_000;

/** The fields; others are passed over, as in a JSON Web Token. */
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
  })
  // One without the other names nothing.
  .refine(({ u, p }) => (u === undefined) === (p === undefined));

/**
 * Reads a capability. Nothing of it is decoded before one of the keys has verified its signature.
 *
 * @param nowSeconds Unix time
 * @returns what it permits; `undefined` where it is too long, not canonical, not signed by one of the keys, has a
 *   field twice or of the wrong type, or has expired: why is no business of its bearer's
 */
export function verifyCapability(
  text: string,
  keys: SigningKeys,
  nowSeconds: number,
): RelayCapability | undefined {
  if (text.length > MAX_CAPABILITY_LENGTH) return undefined;
  const [payload = '', signature, ...rest] = text.split('.');
  if (signature === undefined || rest.length > 0) return undefined;
  if (!keys.verifies(payload, signature, 'base64url')) return undefined;
  const json = decodeBase64Url(payload);
  const parsed = json === undefined ? undefined : fields.safeParse(parseOnce(json));
  if (parsed?.success !== true || nowSeconds >= parsed.data.e) return undefined;
  const { b, k, ct, mb, e, u, p, o } = parsed.data;
  return {
    bucket: b,
    key: k,
    contentType: ct,
    maxBytes: mb,
    expiresAtSeconds: e,
    part: u === undefined || p === undefined ? undefined : { uploadId: u, partNumber: p },
    replaces: o ?? false,
  };
}

/** Signs the JSON of a capability, or any text in its place, with the first of the keys. */
export function signCapabilityText(json: string, keys: SigningKeys): string {
  const payload = Buffer.from(json, 'utf8').toString('base64url');
  return `${payload}.${keys.sign(payload, 'base64url')}`;
}

/** Parses JSON; `undefined` where it is none, or an object has a member twice: readers differ in which they take. */
function parseOnce(json: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return hasRepeatedMember(json) ? undefined : value;
}

/** Strings, each with the colon behind it where it is a member's name; and the ends of objects. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/** @param json well-formed: a string with a colon behind it is the name of a member, however it is escaped */
function hasRepeatedMember(json: string): boolean {
  const objects: Set<unknown>[] = [];
  for (const [token, text, colon] of json.matchAll(TOKEN)) {
    if (token === '{') objects.push(new Set());
    else if (token === '}') objects.pop();
    else if (colon !== undefined && text !== undefined) {
      const name: unknown = JSON.parse(text);
      const names = objects.at(-1);
      if (names?.has(name) === true) return true;
      names?.add(name);
    }
  }
  return false;
}
