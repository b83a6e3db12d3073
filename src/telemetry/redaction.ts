const REDACTED = '[redacted]';

/** Parameters with credentials: those of signed URLs (S3, Google, CloudFront, Azure), and common names. */
const PARAMETER =
  /((?<![a-z0-9])(?:x-(?:amz|goog)-)?(?:signature|credential|security-token|awsaccesskeyid|policy|key-pair-id|sig|hm|token|access_token|api_?key|secret|password)(?:=|%3d))[^&\s"'\\,;]+/gi;

/** Capability of an upload, and signature of external media. */
const CAPABILITY = /([?&]t(?:=|%3d))[^&\s"'\\,;]+/gi;
const SIGNED_PATH = /(\/external\/)[\w-]{43}(?=\/)/g;

const HEADER = /("?\bauthorization"?\s*[:=]\s*"?)[\w.~+/=-]+(?: [\w.~+/=-]+)?/gi;
const BEARER = /(\bbearer )[\w.~+/=-]{8,}/gi;

/** Shorter secrets would match parts of words. */
const MIN_SECRET_LENGTH = 8;

const MAX_TARGET_LENGTH = 200;

/** Parameters that sign a URL: of an attachment, and of an upload. */
const SIGNATURES: ReadonlySet<string> = new Set(['hm', 't']);

/**
 * Creates a function that redacts a log line: known secrets anywhere, and texts that look like credentials. Not
 * covered: secrets that are split, encoded other than in JSON, or shorter than eight characters.
 */
export function createRedaction(
  secrets: readonly (string | undefined)[],
): (line: string) => string {
  const known = secrets
    .filter((secret) => secret !== undefined)
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .map((secret) => JSON.stringify(secret).slice(1, -1));
  return (line) => {
    let redacted = line;
    for (const pattern of [PARAMETER, CAPABILITY, SIGNED_PATH, HEADER, BEARER]) {
      redacted = redacted.replace(pattern, `$1${REDACTED}`);
    }
    for (const secret of known) redacted = redacted.replaceAll(secret, REDACTED);
    return redacted;
  };
}

/** Redacts and truncates a request target or path for logs and traces. */
export function describeTarget(target: string): string {
  const [path = ''] = target.split('?', 1);
  const query = target.slice(path.length).replace(/(?<=^\?|&)[^&]*/g, redactPair);
  const shown = redactExternal(path) + query;
  return shown.length <= MAX_TARGET_LENGTH ? shown : `${shown.slice(0, MAX_TARGET_LENGTH)}…`;
}

/** Redacts the signature of external media, and that of a local attachment inside (contract §14), in any encoding. */
function redactExternal(path: string): string {
  const [, opaque = ''] = /\/external\/[^/]+\/v2\/(.*)$/s.exec(path) ?? [];
  const hasInner = /[?&]hm=/.test(Buffer.from(opaque, 'base64url').toString('latin1'));
  const shown = hasInner ? path.slice(0, -opaque.length) + REDACTED : path;
  return shown
    .replace(/(\/external\/)[^/]+/, `$1${REDACTED}`)
    .replace(/((?:[/?&]|%(?:25)*(?:26|3f))hm(?:=|%(?:25)*3d))[^%&/]+/gi, `$1${REDACTED}`);
}

/** Redacts a signature; its name may be percent-encoded. */
function redactPair(pair: string): string {
  const [name = ''] = new URLSearchParams(`?${pair}`).keys();
  return SIGNATURES.has(name) ? `${name}=${REDACTED}` : pair;
}
