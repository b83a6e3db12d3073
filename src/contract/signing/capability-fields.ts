/** Rules for the fields of upload capabilities (contract §10). Without Node modules, for the client library. */

export const MAX_CAPABILITY_LENGTH = 16_384;

/** A media type with parameters (RFC 9110 §8.3.1). */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?:[ \t]*;[ -~]*)?$/;

export function isMediaType(text: string): boolean {
  return text.length <= 255 && MEDIA_TYPE.test(text);
}

/** Maximum part number (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */
export const MAX_PART_NUMBER = 10_000;

/** Parses JSON; returns `undefined` if it is invalid or repeats a member, which other parsers may resolve differently. */
export function parseOnce(json: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return hasRepeatedMember(json) ? undefined : value;
}

/** Matches braces and strings, with the colon after the name of a member. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/** @param json valid JSON, in which only names of members precede a colon */
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
