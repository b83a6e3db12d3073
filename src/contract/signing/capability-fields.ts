/** Rules for the fields of upload capabilities (contract §10). Needs no Node module: the client library has them. */

/** Longest capability, in characters. */
export const MAX_CAPABILITY_LENGTH = 16_384;

/** A media type with its parameters, as a header can contain it (RFC 9110 §8.3.1). */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?:[ \t]*;[ -~]*)?$/;

/** Whether a text is a media type that can be stored. */
export function isMediaType(text: string): boolean {
  return text.length <= 255 && MEDIA_TYPE.test(text);
}

/** Highest part number; S3 counts from 1 (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */
export const MAX_PART_NUMBER = 10_000;

/** Parses JSON; returns `undefined` if it is invalid, or has a member twice, of which readers may take either. */
export function parseOnce(json: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return hasRepeatedMember(json) ? undefined : value;
}

/** Matches strings, each with a following colon if it is a member's name, and the braces of objects. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/** @param json valid JSON: a string before a colon is the name of a member, however it is escaped */
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
