/** Parsers of request headers, written from the grammars, to compare with the service's own. */

const OWS = '[ \\t]*';

/** Removes optional white space (OWS). */
export const trimOws = (text: string): string =>
  text.replaceAll(new RegExp(`^${OWS}|${OWS}$`, 'g'), '');

/**
 * RFC 9110 §14.1.2 and §14.2: `full`, `unsatisfiable`, or `first-last`; a list of one range may have
 * empty elements (§5.6.1.2). White space belongs to the commas.
 */
export function rangeOf(header: string, sizeBytes: number): string {
  const [, list = ''] = /^bytes=(.*)$/is.exec(header) ?? [];
  const elements = list.split(new RegExp(`${OWS},${OWS}`)).filter((element) => element !== '');
  const [, first, last] = /^(\d*)-(\d*)$/.exec(elements[0] ?? '') ?? [];
  if (elements.length !== 1 || first === undefined || last === undefined) return 'full';
  const size = BigInt(sizeBytes);
  if (first === '') {
    if (last === '') return 'full';
    if (BigInt(last) === 0n) return 'unsatisfiable';
    if (size === 0n) return 'full';
    return `${BigInt(last) > size ? 0n : size - BigInt(last)}-${size - 1n}`;
  }
  if (last !== '' && BigInt(last) < BigInt(first)) return 'full';
  if (BigInt(first) >= size) return 'unsatisfiable';
  return `${BigInt(first)}-${last === '' || BigInt(last) >= size ? size - 1n : BigInt(last)}`;
}

/** RFC 9110 §8.8.3 and §13.1.2: the tags of a list; `undefined` for a malformed list. */
export function tagsOf(list: string): readonly string[] | undefined {
  const element = `${OWS}(?:(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"${OWS})?`;
  if (!new RegExp(`^${element}(?:,${element})*$`).test(list)) return undefined;
  return [...list.matchAll(/(?:W\/)?"[^"]*"/g)].map(([tag]) => tag);
}
