/**
 * Readers of request headers, written from the grammars, one character after the other and without
 * regular expressions. Tests hold the service's own against them.
 */

const isOws = (character: string | undefined): boolean => character === ' ' || character === '\t';

/** Takes off what HTTP calls optional white space. */
export function trimOws(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isOws(text[start])) start += 1;
  while (end > start && isOws(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

const isDigits = (text: string): boolean =>
  [...text].every((digit) => digit >= '0' && digit <= '9');

/**
 * RFC 9110 §14.1.2 and §14.2: `full`, `unsatisfiable`, or `first-last`; a list of one range may have
 * empty elements (§5.6.1.2).
 */
export function rangeOf(header: string, sizeBytes: number): string {
  const [unit = '', ...values] = header.split('=');
  if (unit.toLowerCase() !== 'bytes' || values.length !== 1) return 'full';
  const elements = (values[0] ?? '').split(',');
  // White space belongs to the commas: none before the first element nor after the last one.
  const trimmed = elements.map((element, index) => {
    const inner = trimOws(element);
    if (inner === '') return '';
    const isLedIn = index === 0 && isOws(element[0]);
    const isLedOut = index === elements.length - 1 && isOws(element.at(-1));
    return isLedIn || isLedOut ? 'malformed' : inner;
  });
  const [element, ...more] = trimmed.filter((text) => text !== '');
  if (element === undefined || more.length > 0) return 'full';
  const [first = '', last = '', ...rest] = element.split('-');
  if (!element.includes('-') || rest.length > 0 || !isDigits(first + last)) return 'full';
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

/** RFC 9110 §8.8.3 and §13.1.2: the opaque tags of a list; `undefined` for one that is malformed. */
export function tagsOf(list: string): readonly string[] | undefined {
  const tags: string[] = [];
  let index = 0;
  const skipOws = (): void => {
    while (isOws(list[index])) index += 1;
  };
  while (true) {
    skipOws();
    if (list[index] === 'W') {
      if (list.slice(index, index + 3) !== 'W/"') return undefined;
      index += 2;
    }
    if (list[index] === '"') {
      const end = list.indexOf('"', index + 1);
      if (end < 0) return undefined;
      const opaque = list.slice(index + 1, end);
      const isEtagc = (code: number): boolean =>
        code === 0x21 || (code >= 0x23 && code <= 0x7e) || (code >= 0x80 && code <= 0xff);
      if (![...opaque].every((character) => isEtagc(character.charCodeAt(0)))) return undefined;
      tags.push(opaque);
      index = end + 1;
      skipOws();
    }
    if (index >= list.length) return tags;
    if (list[index] !== ',') return undefined;
    index += 1;
  }
}
