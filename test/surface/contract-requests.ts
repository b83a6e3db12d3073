/** Random requests of every kind: valid, invalid in known parts, and hostile. */

import fc from 'fast-check';
import {
  canonicalOf,
  isParameterValue,
  isPathValue,
  parameterNames,
  pathWords,
  type Row,
  rows,
  SIZES,
  segmentsOf,
  type ValidParts,
} from './contract-oracle.ts';

/** Draws from arbitraries with weights. */
export const weighted = <Value>(...all: readonly (readonly [number, fc.Arbitrary<Value>])[]) =>
  fc.oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const id = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
  fc.constantFrom('0', '1', '9', '10', '9007199254740993', '18446744073709551615'),
);
const hash = fc
  .oneof(
    fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/),
    fc.stringMatching(/^a_[A-Za-z0-9_-]{1,126}$/),
    fc.constantFrom('a', '_', '-', 'A_', 'a_a_', 'a_a', 'aa_b'),
  )
  .filter((text) => isPathValue('icon_hash', text));
const nameUnit = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom(...'%?#&=+;:@!$,()*\'"<>|^`{}[]~ .-_'),
  fc.constantFrom('%2f', '%00', '..', '\u202e', '\u200f', 'e\u0301', '\u00e9', '\ufeff', '🎉', 'ﬁ'),
);
const filename = fc
  .oneof(
    fc.string({ unit: nameUnit, minLength: 1, maxLength: 40 }),
    fc.constantFrom('x'.repeat(255), '...', '.. ', '%2e%2e', '__proto__', 'a?width=1', ' ', '🎉'),
    fc.constantFrom('€'.repeat(85), 'avatars', 'a.MOV', 'a.mp4'),
  )
  .filter((text) => isPathValue('filename', text));

function pathValue(name: string): fc.Arbitrary<string> {
  if (name === 'filename') return filename;
  return name.endsWith('hash') ? hash : id;
}

const edge = fc.oneof(fc.integer({ min: 1, max: 4096 }), fc.constantFrom(1, 4096)).map(String);
/** Valid values by parameter. */
export const parameterValues: Readonly<Record<string, fc.Arbitrary<string>>> = {
  size: fc.constantFrom(...SIZES),
  quality: fc.constantFrom('high', 'low', 'lossless'),
  animated: fc.constantFrom('true', 'false'),
  format: fc.constantFrom('png', 'jpg', 'jpeg', 'webp', 'gif'),
  width: edge,
  height: edge,
};

/** A valid extension of a row, if it has any. */
export function extensionOf({ extensions }: Row): fc.Arbitrary<string | undefined> {
  return extensions.length === 0 ? fc.constant(undefined) : fc.constantFrom(...extensions);
}

/** Some parameters of a row, with values. */
export function parametersOf({ query }: Row, values = parameterValues) {
  const names = parameterNames[query];
  const known = names.map((name) => [name, values[name] ?? fc.constant('')]);
  return fc.record(Object.fromEntries(known), { requiredKeys: [] }) as fc.Arbitrary<
    Record<string, string>
  >;
}

/** A valid request of any row with some of its parameters. */
export const drawn: fc.Arbitrary<ValidParts> = fc.constantFrom(...rows).chain((row) => {
  const names = segmentsOf(row).flatMap(({ word, name }) => (word === undefined ? [name] : []));
  return fc.record({
    row: fc.constant(row),
    values: fc.record(Object.fromEntries(names.map((name) => [name, pathValue(name)]))),
    extension: extensionOf(row),
    parameters: parametersOf(row),
  });
});

/** Percent-encodes a text: for seed 0 only where necessary, for 1 all in lower case, for 2 in upper case, else a mixture. */
function disguise(text: string, seed: number): string {
  let state = seed;
  return Array.from(text)
    .map((character) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      const isEscaped = seed !== 0 && (seed < 3 || state % 3 === 0);
      if (!isEscaped) return encodeURIComponent(character);
      const hex = (byte: number): string => byte.toString(16).padStart(2, '0');
      const escaped = [...Buffer.from(character)].map((byte) => `%${hex(byte)}`).join('');
      return seed === 1 || (seed > 2 && state % 2 === 0) ? escaped : escaped.toUpperCase();
    })
    .join('');
}

/** Unknown parameters, and other noise without effect. */
function noiseFor({ query }: Row): fc.Arbitrary<readonly string[]> {
  const known = parameterNames[query];
  const pieces = [
    ...['size', 'width', 'height', 'format', 'quality', 'animated'].map((name) => `${name}=0`),
    ...['v=1', 'v', '', '=', '=1', '%ff=%', '__proto__=1', 'toString', '?', 'a;b', 'size[]=1'],
    ...['Size=1', 'size%00=1', '%20size=1', 'size+=1', '%2573ize=x'],
  ].filter((piece) => !known.includes(piece.split('=')[0] ?? ''));
  return fc.array(fc.constantFrom(...pieces), { maxLength: 4 });
}

const seed = fc.oneof(fc.constantFrom(0, 1, 2), fc.nat());

/** A spelling of a request's target, with additional pairs in its query. */
export function spellings(request: ValidParts, more: readonly string[] = []): fc.Arbitrary<string> {
  const { row, parameters } = request;
  const pairs = Object.entries(parameters);
  return fc
    .record({
      escapes: seed,
      noise: noiseFor(row),
      order: fc.shuffledSubarray(pairs, { minLength: pairs.length }),
      at: fc.nat(4),
      origin: fc.constantFrom('', '', '', 'http://cdn.example', 'HTTPS://user@cdn.example:8443'),
      fragment: fc.constantFrom('', '', '', '#', '#?size=0', '#/../x'),
      mark: fc.boolean(),
    })
    .map(({ escapes, noise, order, at, origin, fragment, mark }) => {
      const known = order.map(
        ([name, value]) => `${disguise(name, escapes)}=${disguise(value, escapes)}`,
      );
      const query = [...known.slice(0, at), ...noise, ...known.slice(at), ...more].join('&');
      const path = formatPath(request, escapes);
      return `${origin}${path}${query !== '' || mark ? `?${query}` : ''}${fragment}`;
    });
}

function formatPath({ row, values, extension }: ValidParts, escapes: number): string {
  return segmentsOf(row)
    .map(({ word, name, hasExtension }) =>
      disguise(word ?? `${values[name]}${hasExtension ? `.${extension}` : ''}`, escapes),
    )
    .map((segment) => `/${segment}`)
    .join('');
}

/** Equivalent requests: parameters without effect are added, changed or omitted. */
export function equivalents(request: ValidParts): fc.Arbitrary<ValidParts> {
  const { row, values, extension, parameters } = request;
  const candidates = [request];
  for (const name of parameterNames[row.query]) {
    const { [name]: _, ...without } = parameters;
    const others = ['true', 'false', 'high', 'lossless', '128', 'jpg', 'jpeg']
      .filter((value) => isParameterValue(name, value))
      .map((value) => ({ ...parameters, [name]: value }));
    for (const each of [without, ...others]) candidates.push({ ...request, parameters: each });
  }
  for (const other of extension?.startsWith('jp') ? ['jpg', 'jpeg'] : [])
    candidates.push({ ...request, extension: other });
  for (const [name, value] of Object.entries(values).filter(([name]) => name.endsWith('hash'))) {
    for (const marked of [`a_${value}`, value.replace(/^a_/, '')].filter((each) =>
      isPathValue(name, each),
    ))
      candidates.push({ ...request, values: { ...values, [name]: marked } });
  }
  const same = JSON.stringify(canonicalOf(request));
  return fc.constantFrom(
    ...candidates.filter((each) => JSON.stringify(canonicalOf(each)) === same),
  );
}

/** Two valid requests that often differ in only one part. */
export const neighbours: fc.Arbitrary<readonly [ValidParts, ValidParts]> = drawn.chain((one) =>
  fc.tuple(
    fc.constant(one),
    fc.oneof(
      equivalents(one),
      drawn,
      drawn.map(({ row, values }) => (row === one.row ? { ...one, values } : one)),
      drawn.map(({ row, extension }) => (row === one.row ? { ...one, extension } : one)),
      drawn.map(({ row, parameters }) =>
        row.query === one.row.query ? { ...one, parameters } : one,
      ),
    ),
  ),
);

const anyText = fc.string({ unit: 'binary', maxLength: 30 });
const badIds = fc
  .oneof(
    anyText,
    fc.constantFrom('', '00', '01', '-1', '+1', '1.0', '1e3', '0x1', ' 1', '1\n', '1\0', '1/2'),
    fc.constantFrom(
      '18446744073709551616',
      '9'.repeat(21),
      '9'.repeat(5000),
      '１',
      '__proto__',
      '..',
    ),
  )
  .filter((text) => !isPathValue('user_id', text) && !pathWords.includes(text));
const badHashes = fc
  .oneof(
    anyText,
    fc.constantFrom('', 'a_', 'a'.repeat(129), `a_${'b'.repeat(127)}`, 'a b', 'a+b', 'a/b', 'a\\b'),
    fc.constantFrom('..', 'a.b', 'a~b', 'é', 'ａ', 'K', 'a\n', 'a\0', 'a%62', 'a'.repeat(5000)),
  )
  .filter((text) => !isPathValue('icon_hash', text));
const badFilenames = fc.oneof(
  fc.constantFrom('', '.', '..', '/', 'a/b', '../../etc/passwd', '\\', '..\\..', 'a\0.png', '\r\n'),
  fc.constantFrom('a\nSet-Cookie: x=1', '\x7f', '\x80', '\x9f', '\x1b[31m', 'x'.repeat(256)),
  fc.constantFrom('é'.repeat(128), '🎉'.repeat(64), 'x'.repeat(5000)),
  anyText.map((text) => `${text}\0`),
);
const badExtensions = (row: Row): fc.Arbitrary<string> =>
  fc
    .oneof(
      anyText.map((text) => text.replaceAll('.', '')),
      fc.constantFrom(
        ...['', 'PNG', 'Jpg', 'png ', 'pn', 'avif', 'svg', 'json', 'apng', 'png\0', 'png/'],
      ),
      fc.constantFrom('constructor', '__proto__', 'gif', 'jpg', 'webp', 'png', 'ｐｎｇ'),
    )
    .filter((text) => !row.extensions.includes(text));
/** Segments of invalid percent-encoded UTF-8. */
const undecodable = fc.constantFrom(
  ...['%', '%2', '%zz', '%u0061', '%ff', '%c3', '%80', '%c0%af', '%c0%ae%c0%ae', '%e0%80%af'],
  ...['%ed%a0%80', '%ed%a0%bd%ed%b8%80', '%f4%90%80%80', '%f8%88%80%80%80', '%fe%ff', 'a%'],
  ...['\u00e9', '\u00c3\u00a9', '\ud800', '\udc00.png', '🎉', '\u2215', '\uff0e\uff0e'],
);
/** Invalid values of a parameter, or a repeated one. */
export const badParameter = (name: string): fc.Arbitrary<readonly string[]> => {
  const isBad = (value: string): boolean => !isParameterValue(name, value);
  const bad = fc
    .oneof(
      anyText,
      fc.constantFrom('', '0', '-1', '128.0', '0x80', '0128', '1e2', '+64', ' 64', '64\n', '１６'),
      fc.constantFrom('4097', '9'.repeat(400), 'True', 'TRUE', '1', 'yes', 'HIGH', 'PNG', '.png'),
    )
    .filter(isBad);
  const good = parameterValues[name] ?? fc.constant('');
  return fc.oneof(
    bad.map((value) => [value]),
    fc.tuple(good, good),
    fc.tuple(good, bad),
    fc.tuple(bad, good, bad),
  );
};

/** A request with one or more invalid parts, and their sorted names. */
export const broken = drawn.chain(({ row, values, extension, parameters }) => {
  const segments = segmentsOf(row);
  const names = segments.flatMap(({ word, name }) => (word === undefined ? [name] : []));
  const hasExtension = row.extensions.length > 0;
  const places = [...names, ...(hasExtension ? ['ext'] : []), ...parameterNames[row.query]];
  const badValue = (name: string): fc.Arbitrary<{ text: string; isRaw: boolean }> => {
    const bad = name === 'filename' ? badFilenames : name.endsWith('hash') ? badHashes : badIds;
    return weighted<{ text: string; isRaw: boolean }>(
      [4, bad.map((text) => ({ text, isRaw: false }))],
      [1, undecodable.map((text) => ({ text, isRaw: true }))],
    );
  };
  return fc
    .record({
      at: fc.subarray(places, { minLength: 1 }),
      bad: fc.record(Object.fromEntries(names.map((name) => [name, badValue(name)]))),
      ext: hasExtension ? badExtensions(row) : fc.constant(''),
      query: fc.record(
        Object.fromEntries(parameterNames[row.query].map((name) => [name, badParameter(name)])),
      ) as fc.Arbitrary<Record<string, readonly string[]>>,
      escapes: seed,
      noise: noiseFor(row),
    })
    .map(({ at, bad, ext, query, escapes, noise }) => {
      const faults = new Set(at);
      const path = segments.map(({ word, name, hasExtension: isLast }) => {
        if (word !== undefined) return word;
        const wrong = at.includes(name) ? bad[name] : undefined;
        if (wrong?.isRaw === true) {
          if (isLast) faults.delete('ext'); // an unreadable segment has no extension
          return wrong.text;
        }
        const end = at.includes('ext') ? ext : extension;
        const value = wrong?.text ?? values[name] ?? '';
        return disguise(isLast ? `${value}.${end}` : value, escapes);
      });
      const pairs = parameterNames[row.query].flatMap((name) => {
        const given = at.includes(name) ? query[name] : [parameters[name]].flatMap((v) => v ?? []);
        return (given ?? []).map((value) => `${name}=${disguise(value, escapes)}`);
      });
      const search = [...noise, ...pairs].join('&');
      return { target: `/${path.join('/')}?${search}`, faults: [...faults].sort() };
    });
});

/** Unknown paths, each derived from a valid one. */
export const foreign: fc.Arbitrary<string> = drawn.chain((request) => {
  const { row } = request;
  const segments = segmentsOf(row);
  const path = formatPath(request, 0);
  const parts = path.slice(1).split('/');
  const ids = segments.flatMap(({ word, name, hasExtension }, index) =>
    word === undefined && name !== 'filename' && !hasExtension ? [index] : [],
  );
  const replaced = (index: number, text: string): string =>
    `/${parts.map((part, position) => (position === index ? text : part)).join('/')}`;
  const withoutDot = `/${[...parts.slice(0, -1), (parts.at(-1) ?? '').replaceAll('.', '')].join('/')}`;
  return fc
    .oneof(
      fc.constantFrom(
        ...[`${path}/x`, `${path}/`, `/${path}`, `/.${path}`, `/x/..${path}`, path.slice(1)],
      ),
      fc.constantFrom(`ftp://cdn.example${path}`, `//cdn.example${path}`, `\\${path}`),
      fc.constantFrom('', '/', '*', '?', '#', 'http://cdn.example', '/favicon.ico', `?${path}`),
      fc.constantFrom(
        ...['/attachments/1/2', '/guilds/1/ab.png', '/guilds/1/users/2/icons/ab.png', '/3.png'],
        ...['/attachments%2f1/2/name', '/avatars\\1\\ab.png', '/../../etc/passwd'],
        ...['http:///x/avatars/1/ab.png', 'http://cdn.example?/avatars/1/ab.png'],
      ),
      fc
        .constantFrom('Avatars', 'avatar', '%ff', '', '.', '..', '%2e%2e', 'constructor', 'x%2fy')
        .map((word) => replaced(0, word)),
      ...(ids.length > 0
        ? [
            fc
              .tuple(fc.constantFrom(...ids), fc.constantFrom(...pathWords))
              .map(([at, word]) => replaced(at, word)),
          ]
        : []),
      ...(row.query === 'external' ? [] : [fc.constant(withoutDot)]),
    )
    .chain((target) => fc.constantFrom(target, `${target}?size=64`, `${target}?size=0&size=0`));
});

const hostilePiece = fc.oneof(
  fc.constantFrom(...'/ . .. %2e %2E%2e %2f %5c \\ %00 \0 % %25 %252f'.split(' ')),
  fc.constantFrom('%c0%ae', '%c0%af', '%ed%a0%80', '%ff', '\u00e9', 'e\u0301', '%u002e', '\ud800'),
  fc.constantFrom('\u202e', '\u200f', '\u200e', '\ufeff', '%e2%80%ae', '\r\n', '%0d%0a', '\t', ' '),
  fc.constantFrom(...'? # & = ; + @ : * " < { $& :// http://'.split(' ')),
  fc.constantFrom(...'avatars attachments emojis guilds users 1 a_ .png size='.split(' ')),
  fc.constantFrom('．．', '∕', '＼', 'K', 'ﬁ', 'ß', 'İ', '\u0085', '\u2028', '%c2%85', '%e2%80%a8'),
  fc.string({ unit: 'binary', maxLength: 3 }),
  fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
);

/** Hostile targets, mostly valid paths with pieces inserted or removed. */
export const hostile: fc.Arbitrary<string> = fc.oneof(
  fc.array(hostilePiece, { maxLength: 16 }).map((pieces) => pieces.join('')),
  fc.array(hostilePiece, { maxLength: 8 }).map((pieces) => `/attachments/1/2/${pieces.join('')}`),
  fc.array(hostilePiece, { maxLength: 6 }).map((pieces) => `/avatars/1/${pieces.join('')}.png`),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc
    .tuple(
      drawn.chain(spellings),
      fc.array(fc.tuple(fc.nat(200), fc.nat(5), hostilePiece), { maxLength: 3 }),
    )
    .map(([target, edits]) =>
      edits.reduce((text, [at, length, piece]) => {
        const position = at % (text.length + 1);
        return text.slice(0, position) + piece + text.slice(position + length);
      }, target),
    ),
);
