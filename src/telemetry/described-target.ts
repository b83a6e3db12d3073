import { REDACTED } from './redaction.ts';

/** Longest target that is shown, in characters. */
const MAX_LENGTH = 200;

/** Parameters that permit what the rest of a URL names: the signature of an attachment, the capability of an upload. */
const PERMITTING: ReadonlySet<string> = new Set(['hm', 't']);

/**
 * A request target as logs and traces may show it: without what in it permits, and cut to what a line can hold. Who
 * reads a log must not come to see by it what it only names.
 *
 * @param target path and query as they came, or the path alone
 */
export function describeTarget(target: string): string {
  const [path = ''] = target.split('?', 1);
  const query = target.slice(path.length).replace(/(?<=^\?|&)[^&]*/g, redactPair);
  const shown = path.replace(/(\/external\/)[^/]+/, `$1${REDACTED}`) + query;
  return shown.length <= MAX_LENGTH ? shown : `${shown.slice(0, MAX_LENGTH)}…`;
}

/** The name of a parameter may have escapes, as it has for those who read it. */
function redactPair(pair: string): string {
  const [name = ''] = new URLSearchParams(`?${pair}`).keys();
  return PERMITTING.has(name) ? `${name}=${REDACTED}` : pair;
}
