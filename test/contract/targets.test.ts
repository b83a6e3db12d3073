import { describe, expect, it } from 'vitest';
import { formatPath, parsePath } from '../../src/contract/media-path.ts';
import { parseQuery, type QueryKind, queryParameters } from '../../src/contract/media-query.ts';
import { isKnownPath, parseTarget, splitTarget } from '../../src/contract/media-request.ts';
import { resourceRows } from '../../src/contract/resources.ts';
import { judge, parameterNames, rows, SIZES, type Verdict } from '../surface/contract-oracle.ts';
import { keyOf, verdictOf } from './service-verdict.ts';

const AVATAR = '/avatars/1/ab';
const STICKER = '/stickers/1';
const FILE = '/attachments/1/2/name.png';

/** One target of each kind of query, with the question mark. */
const IMAGE = `${AVATAR}.webp?`;
const QUERIES = [IMAGE, `${STICKER}.webp?`, `${FILE}?`];
const SIZED = QUERIES.slice(0, 2);

/** Checks what a target is; all that is not said here is as the contract's second writing says. */
function expectVerdict(target: string, expected: object): void {
  const verdict: Verdict = verdictOf(target);
  expect(verdict, target).toMatchObject(expected);
  expect(verdict, target).toEqual(judge(target));
  expect(isKnownPath(target), target).toBe(verdict.kind !== 'unknown path');
  if (verdict.kind !== 'media' && verdict.kind !== 'default avatar') return;
  if (verdict.kind === 'media') expect(keyOf(target)).toMatch(/^[!->@-~]+\?[!->@-~]+$/);
  const parsed = parsePath(splitTarget(target)[0]);
  if (parsed.kind !== 'valid') throw new Error(`${target} is ${parsed.kind}`);
  const written = formatPath(parsed.path);
  expect(written).toMatch(/^[!-"$->@-[\]-~]+$/); // visible ASCII, without a query or fragment
  expect(parsePath(written)).toEqual(parsed);
}

const each = (heads: readonly string[], tails: readonly string[]): string[] =>
  heads.flatMap((head) => tails.map((tail) => head + tail));
const encoded = (texts: readonly string[]): string[] => texts.map(encodeURIComponent);
const inAvatar = (ids: readonly string[]): string[] => ids.map((id) => `/avatars/${id}/ab.png`);
const inIcon = (hashes: readonly string[]): string[] => hashes.map((it) => `/icons/1/${it}.png`);
const inFile = (names: readonly string[]): string[] => names.map((it) => `/attachments/1/2/${it}`);

describe('the resources of contract §1', () => {
  it('are these rows', () => {
    const own = Object.values(resourceRows).map(
      ({ template, extensions = [], originKey = '', query }) => {
        return { path: template, extensions, originKey, query };
      },
    );
    // Its path is read as a whole: test/contract/signing/external-path.test.ts.
    const external = { path: '/external/{signature}/{target}', extensions: [], originKey: '' };
    expect(own).toEqual([...rows, { ...external, query: 'external' }]);
  });

  it.each(rows)('$path is read with its extensions, and with no other', ({ path, extensions }) => {
    const stem = path.replace('{index}', '3').replace(/\{\w+_id\}/g, '41');
    for (const value of path.includes('_hash}') ? ['ab', 'a_ab', 'A_b'] : ['no-extension']) {
      const fill = (extension: string): string =>
        stem.replace(/\{\w+_hash\}|\{filename\}/, value).replace('{ext}', extension);
      for (const extension of extensions.length > 0 ? extensions : ['']) {
        const target = fill(extension);
        expectVerdict(target, {});
        const parsed = parsePath(target);
        const template = parsed.kind === 'valid' && resourceRows[parsed.path.resource].template;
        expect(template).toBe(path);
      }
      if (extensions.length === 0) continue;
      const all = ['png', 'jpg', 'jpeg', 'webp', 'gif', 'PNG', 'Gif', 'avif', 'svg', 'png '];
      for (const extension of [...all, 'pn', 'constructor', '']) {
        if (extensions.includes(extension)) continue;
        expectVerdict(fill(encodeURIComponent(extension)), { kind: 'refused', faults: ['ext'] });
      }
      expectVerdict(fill('').slice(0, -1), { kind: 'unknown path' });
    }
  });

  it('take the mark of animation off the stored key, once and only at the start', () => {
    const keys = { a_b: 'b', a_a_b: 'a_b', A_b: 'A_b', ba_b: 'ba_b', 'a-b': 'a-b' };
    for (const [hash, stored] of Object.entries(keys)) {
      expectVerdict(`/icons/1/${hash}.gif`, { canonical: { originKey: `icons/1/${stored}` } });
    }
  });
});

const noPaths = {
  'is none': [
    ...['', '/', '//', '*', 'avatars/1/ab.png', '/avatars', '/avatars/', '/avatars/1/ab.png/'],
    ...['//avatars/1/ab.png', '/avatars//1/ab.png', '/Avatars/1/ab.png', '/avatars/1/2/ab.png'],
    ...['/avatar/1/ab.png', '/favicon.ico', '/robots.txt', '/emojis/1/ab.png', '/guilds/1/ab.png'],
    ...['/guilds/1/users/2/ab.png', '/guilds/1/users/2/icons/ab.png', '/__proto__/1/ab.png'],
    ...['/guilds/1/members/2/avatars/ab.png', '/attachments/1/2', '/attachments/1/2/3/name.png'],
    ...['/attachments/1/2/name.png/', '/attachments/1/2/../name.png', '/./avatars/1/ab.png'],
    ...['/icons/../avatars/1/ab.png', '/%ff/1/ab.png', '/avatars\\1\\ab.png', '/3.png'],
    ...['/../../etc/passwd', '/attachments/../../etc/passwd'],
    ...['/attachments/1/2/../../../etc/passwd', '/nothing/here.png?size=123'],
  ],
  'has an escaped slash for a separator': ['/attachments/1/2%2fname', '/attachments%2f1/2/name'],
  'has a word of the paths for an id': [
    ...['/avatars/avatars/3.png', '/avatars/users/ab.png', '/icons/icons/ab.png'],
    '/attachments/attachments/1/name.png',
  ],
  'is the address of something else': [
    ...[
      'ftp://cdn.example/avatars/1/ab.png',
      'http://cdn.example',
      '//cdn.example/avatars/1/a.png',
    ],
    ...['http://cdn.example?/avatars/1/ab.png', 'http:///x/avatars/1/ab.png', '?/avatars/1/ab.png'],
    '#/avatars/1/ab.png',
  ],
};

it.each(Object.entries(noPaths))('a target that %s is not found', (_, targets) => {
  for (const target of targets) expectVerdict(target, { kind: 'unknown path' });
});

const badIds = [
  ...['', '18446744073709551616', '99999999999999999999', '100000000000000000000', '01', '00'],
  ...['9'.repeat(100), '-1', '-0', '+1', '0x1', 'ff', '1e3', '1_000', '1n', '1.0', ' 1', '1 '],
  ...['1\n', '1\0', '1/2', '..', '１', '٣', '@me', 'me'], // full-width and Arabic-Indic digits, too
];
const badHashes = [
  ...['', 'a_', 'a'.repeat(129), `a_${'b'.repeat(127)}`, 'a.b', 'a b', 'a+b', 'a~b', 'a%b'],
  ...['a/b', 'a\\b', '..', 'a\n', 'a\0', 'é', 'ａ', '😀'],
];
const badNames = {
  'no name': ['', '.', '..', '%2e', '%2e%2E', '.%2e'],
  'a way out': [
    ...['%2f', '..%2f..%2fetc%2fpasswd', '%2e%2e%2f%2e%2e%2fetc%2fpasswd', 'a%5cb', 'a\\b'],
    ...['..%5c..%5cetc', '..\\..\\etc'],
  ],
  'control characters': [
    ...['%00', 'name.png%00.txt', '%0d%0aSet-Cookie:a=b', '%1b[31m', '%7f', '%c2%80', '%c2%9f'],
    '\u00c2\u0085',
  ],
  'characters beyond ASCII, unescaped': ['é', '\u00c3\u00a9', '\ud800'],
  'no escapes': ['%', '%2', '%zz', '%u00e9'],
  'no UTF-8': [
    // Cut, overlong, surrogates (CESU-8), beyond U+10FFFF, of five bytes.
    ...['%ff', '%c3', '%80', '%c0%af', '%c0%ae%c0%ae', '%e0%80%af', '%ed%a0%80', '%ed%b0%80'],
    ...['%ed%a0%bd%ed%b8%80', '%f4%90%80%80', '%f8%88%80%80%80'],
  ],
};
const badQualities = [
  ...['', 'High', 'LOW', 'lossless%20', '80', 'medium', 'undefined', 'high,low', '%00', '%256cow'],
];
const badFlags = [
  ...['', '1', '0', 'True', 'TRUE', 'yes', 'on', 'null', 'true%20', '+true', '%74rue%0a'],
];
const badSizes = [
  ...['', '%20', '128.0', '128.', '0128', '%2B128', '+128', '128+', '128%00', '128%0a', '-128'],
  ...['1e2', '0x80', '128px', '128,256', '123', '8192', '9'.repeat(30), 'NaN', 'Infinity', 'true'],
  '%EF%BC%91%EF%BC%96', // 16 in full-width digits
];
const badEdges = [
  ...['', '0', '4097', '9999', '10000', '01', '001', '-1', '%2B1', '+1', '1.0', '1e3', '0x10'],
  ...['1%20', '1%0a', '1,2', '100%25', 'auto', 'NaN', '9'.repeat(30), '%D9%A3'],
];
const badFormats = ['', 'PNG', 'avif', 'svg', 'image/png', '.png', 'png%20', 'original'];

/** What is wrong, by the names at fault in the order in which they are told. */
const refused: readonly (readonly [string, string, readonly string[]])[] = [
  ['an id', 'user_id', inAvatar(encoded(badIds))],
  ['an id before a file', 'attachment_id', encoded(badIds).map((it) => `/attachments/1/${it}/a`)],
  ['an id with an extension', 'emoji_id', encoded(badIds).map((it) => `/emojis/${it}.png`)],
  ['an id that is escaped', 'user_id', ['/avatars/%2e%2e/ab.png']],
  [
    'an index',
    'index',
    ['', '-1', '03', '3.0', 'three', '__proto__', '1%2f2', '18446744073709551616'].map(
      (index) => `/avatars/${index}.png`,
    ),
  ],
  ['a hash', 'icon_hash', inIcon(encoded(badHashes))],
  ...Object.entries(badNames).map(
    ([what, names]) => [`a file name: ${what}`, 'filename', inFile(names)] as const,
  ),
  ['quality', 'quality', each(QUERIES, each(['quality='], badQualities))],
  ['animated', 'animated', each(QUERIES, ['animated', ...each(['animated='], badFlags)])],
  ['size', 'size', each(SIZED, ['size', ...each(['size='], badSizes)])],
  ['width', 'width', each([`${FILE}?width=`], badEdges)],
  ['height', 'height', each([`${FILE}?height=`], badEdges)],
  ['format', 'format', each([`${FILE}?format=`], badFormats)],
  [
    'a parameter given twice, values alike or not',
    'quality',
    each(QUERIES, [
      ...['quality=low&quality=low', 'quality=low&quality=high', 'quality=low&v=1&qu%61lity=low'],
      ...['quality=&quality=bad', 'quality&quality', 'quality=low&quality=low&quality=low'],
    ]),
  ],
  ['all of a query', 'animated quality', each(QUERIES, ['quality=bad&animated=1&animated=1'])],
  ['all of a path', 'user_id avatar_hash ext', ['/avatars/x/!.bmp']],
  [
    'all of a long path',
    'guild_id user_id avatar_hash ext',
    ['/guilds/01/users/-1/avatars/a_.PNG'],
  ],
  ['an escape among others', 'user_id avatar_hash', ['/avatars/%ff/%ff']],
  [
    'a file',
    'channel_id attachment_id filename',
    ['%2f', '%ff'].map((it) => `/attachments/x/y/${it}`),
  ],
  ['a default avatar, but for its query', 'index ext', ['/avatars/x.gif?size=123']],
  [
    'path and query',
    'user_id avatar_hash ext size quality animated',
    ['/avatars/01/!.bmp?size=123&quality=HIGH&animated=1'],
  ],
  [
    'path and query of a file',
    'channel_id attachment_id filename width height format quality animated',
    ['/attachments/-1/+1/%00?width=0&height=4097&format=PNG&quality=best&animated=on'],
  ],
];

it.each(refused)('a target is refused for %s: %s', (_, names, targets) => {
  const faults = names.split(' ');
  for (const target of targets) {
    expectVerdict(target, { kind: 'refused', faults: faults.toSorted() });
    expect(() => parseTarget(target)).toThrow(
      expect.objectContaining({ faults: faults.map((path) => expect.objectContaining({ path })) }),
    );
  }
});

describe('what is taken', () => {
  it.each([
    ['ids', inAvatar(['0', '1', '9007199254740993', '18446744073709551615'])],
    [
      'hashes',
      inIcon(['a', '-', '_', 'A_b', 'aZ09_-', 'a_a', 'a'.repeat(128), `a_${'b'.repeat(126)}`]),
    ],
    [
      'indexes, in range or not',
      ['0', '5', '6', '18446744073709551615'].map((index) => `/avatars/${index}.png`),
    ],
    ['sizes', each(SIZED, each(['size='], SIZES))],
    [
      'edges',
      each([`${FILE}?width=`, `${FILE}?height=`], ['1', '2', '999', '1000', '4095', '4096']),
    ],
    ['formats', each([`${FILE}?format=`], ['png', 'jpg', 'jpeg', 'webp', 'gif'])],
    ['qualities', each(QUERIES, ['quality=high', 'quality=low', 'quality=lossless'])],
    ['flags', each(QUERIES, ['animated=true', 'animated=false'])],
  ])('%s', (_, targets) => {
    for (const target of targets) expectVerdict(target, {});
  });

  it.each(SIZED)('no size of %s between 0 and 5000 but those of the list', (target) => {
    const all = Array.from({ length: 5_001 }, (_, size) => String(size));
    expect(all.filter((size) => verdictOf(`${target}size=${size}`).kind === 'media')).toEqual(
      SIZES,
    );
  });

  it.each([
    ['name.png', 'name.png'],
    ['%6eame%2Epng', 'name.png'],
    ['caf%C3%A9', 'café'],
    ['caf%c3%a9', 'café'],
    ['%E2%80%AEgpj.exe', '\u202egpj.exe'],
    ['%EF%BB%BFbom', '\ufeffbom'],
    ['%F0%9F%8E%89%20party.png', '🎉 party.png'],
    ['a%20b+c', 'a b+c'],
    ['what%3Fwidth=1', 'what?width=1'],
    ['%23hash%26&=;:@!$,()*', '#hash&&=;:@!$,()*'],
    ['100%25', '100%'],
    ['%252e%252e%252fetc', '%2e%2e%2fetc'], // decoded once, and no more
    ['%2500', '%00'],
    ['...', '...'],
    ['..%20', '.. '],
    ['__proto__', '__proto__'],
    ['avatars', 'avatars'],
    ['{filename}.{ext}', '{filename}.{ext}'],
    ['$&$1$`', '$&$1$`'],
  ])('file name %s is %s', (segment, filename) => {
    const originKey = `attachments/1/2/${filename}`;
    expectVerdict(`/attachments/1/2/${segment}`, { filename, canonical: { originKey } });
  });

  it.each(['a', 'é', '€', '🎉'])('file names of 255 bytes of UTF-8, of %s too', (character) => {
    const bytes = Buffer.byteLength(character);
    const longest = 'x'.repeat(255 % bytes) + character.repeat(Math.floor(255 / bytes));
    const target = `/attachments/1/2/${encodeURIComponent(longest)}`;
    expectVerdict(target, { filename: longest });
    expectVerdict(`${target}x`, { kind: 'refused', faults: ['filename'] });
  });

  it('an asset, in canonical form', () => {
    expect(parseTarget('/guilds/3/users/4/banners/a_ff.jpg?size=64&animated=true')).toEqual({
      kind: 'media',
      request: {
        resource: 'member banner',
        originKey: 'guilds/3/users/4/banners/ff',
        filename: undefined,
        widthPx: 64,
        heightPx: undefined,
        format: 'jpeg',
        quality: 'high',
        isAnimated: false,
        isPassthrough: false,
      },
    });
  });

  it.each([
    [true, ['', '?', '?quality=lossless', '?animated=true', '?size=64']],
    [false, ['?quality=high', '?quality=low', '?width=1', '?height=4096', '?format=png']],
  ])('an attachment, as its original: %s', (passthrough, queries) => {
    for (const target of each([FILE], queries))
      expectVerdict(target, { canonical: { passthrough } });
    expectVerdict(`${STICKER}.gif?quality=lossless`, { canonical: { passthrough: false } });
  });
});

const ignored = [
  ...['', 'v=1', 'v=1&v=2', '__proto__=1&constructor=2&toString=3&hasOwnProperty=4', '&&&', '='],
  ...['size[]=123&width[]=0&size.x=1', 'SIZE=123&Quality=bad&ANIMATED=1&Width=0', '%', 'a;b'],
  ...['%20size=123&size%20=123&size%00=1', 'siz=1&sizes=1', '%ff%zz=%', '%2571uality=bad'],
  ...['?size=123&?width=0', '?quality=bad'], // after `??`: the name begins with the second mark
];

/** Targets with one result, those that differ by a query alone as the first one's. */
const alike: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'order of parameters',
    `${IMAGE}size=64&quality=low&animated=true`,
    [`${IMAGE}animated=true&size=64&quality=low`, `${IMAGE}quality=low&animated=true&size=64`],
  ],
  [
    'defaults of an asset',
    `${AVATAR}.webp`,
    each(
      [IMAGE],
      ['', 'size=128', 'quality=high&animated=false', 'animated=false&quality=high&size=128'],
    ),
  ],
  [
    'defaults of a sticker',
    `${STICKER}.webp`,
    each([`${STICKER}.webp?`], ['quality=lossless', 'animated=true']),
  ],
  [
    'defaults of an attachment',
    `${FILE}?width=9`,
    each([`${FILE}?width=9&`], ['quality=lossless', 'animated=false&quality=lossless']),
  ],
  [
    'parameters of no asset',
    `${AVATAR}.webp`,
    each([IMAGE], [...ignored, 'width=0&height=x&format=exe']),
  ],
  ['parameters of no sticker', `${STICKER}.webp`, each([`${STICKER}.webp?`], ignored)],
  ['parameters of no attachment', FILE, each([`${FILE}?`], [...ignored, 'size=123&size=0'])],
  [
    'any query of a default avatar',
    '/avatars/3.png',
    each(['/avatars/3.png?'], [...ignored, 'size=123&size=0', 'quality=bad&animated=1']),
  ],
  ['jpg and jpeg', `${AVATAR}.jpg`, [`${AVATAR}.jpeg`]],
  ['jpg and jpeg of an attachment', `${FILE}?format=jpg`, [`${FILE}?format=jpeg`]],
  ['the mark of an animated original', `${AVATAR}.gif`, ['/avatars/1/a_ab.gif']],
  ['animated on a png', `${AVATAR}.png`, each([`${AVATAR}.png?animated=`], ['true', 'false'])],
  ['animated on a jpeg', `${AVATAR}.jpeg`, [`${AVATAR}.jpg?animated=true`]],
  ['animated on a gif', `${AVATAR}.gif`, each([`${AVATAR}.gif?animated=`], ['true', 'false'])],
  ['animated on a gif sticker', `${STICKER}.gif`, [`${STICKER}.gif?animated=false`]],
  [
    'high and lossless png',
    `${AVATAR}.png`,
    each([`${AVATAR}.png?quality=`], ['high', 'lossless']),
  ],
  [
    'high and lossless gif',
    `${AVATAR}.gif`,
    each([`${AVATAR}.gif?quality=`], ['high', 'lossless']),
  ],
  ['high and lossless gif sticker', `${STICKER}.gif`, [`${STICKER}.gif?quality=high`]],
  [
    'flags of an attachment as png',
    `${FILE}?format=png`,
    each(
      [`${FILE}?format=png&`],
      ['animated=true', 'quality=high', 'quality=lossless&animated=false'],
    ),
  ],
  ['quality of an attachment as gif', `${FILE}?format=gif`, [`${FILE}?format=gif&quality=high`]],
  ['an animation that is not transformed', FILE, [`${FILE}?animated=true`]],
  [
    'escapes of path and query',
    `${AVATAR}.png?size=64`,
    [
      '/%61vatars/%31/%61b%2Epng?s%69ze=%36%34',
      `http://cdn.example${AVATAR}.png?size=64`,
      `HTTPS://user@cdn.example:8443${AVATAR}.png?size=64`,
      `${AVATAR}.png?size=64#size=16`,
    ],
  ],
  ['escapes of a file name', '/attachments/1/2/%C3%A9.png', ['/attachments/1/2/%c3%a9%2e%70ng']],
];

it.each(alike)('targets have one key, whatever the %s', (_, first, others) => {
  for (const target of others) {
    expectVerdict(target, {});
    expect(keyOf(target), target).toBe(keyOf(first));
  }
});

const qualities = ['high', 'low', 'lossless'];
const different: readonly (readonly [string, readonly string[]])[] = [
  ['format', each([`${AVATAR}.`], ['png', 'jpg', 'webp', 'gif'])],
  ['size', each([`${AVATAR}.png?size=`], ['64', '128', '256'])],
  ['size or none', [`${STICKER}.webp`, `${STICKER}.webp?size=128`]],
  ['quality of a webp', each([`${IMAGE}quality=`], qualities)],
  ['quality of a jpeg', each([`${AVATAR}.jpg?quality=`], qualities)],
  ['low quality of a png', [`${AVATAR}.png`, `${AVATAR}.png?quality=low`]],
  ['low quality of a gif', [`${AVATAR}.gif`, `${AVATAR}.gif?quality=low`]],
  ['animation of a webp', [`${AVATAR}.webp`, `${IMAGE}animated=true`]],
  ['animation of a sticker', [`${STICKER}.webp`, `${STICKER}.webp?animated=false`]],
  ['animation of a gif attachment', [`${FILE}?format=gif`, `${FILE}?format=gif&animated=true`]],
  ['animation in the original’s format', [`${FILE}?width=9`, `${FILE}?width=9&animated=true`]],
  ['bounds', each([`${FILE}?`], ['width=9', 'height=9', 'width=9&height=8', 'width=8&height=9'])],
  ['treatment', each([FILE], ['', '?format=png', '?quality=high', '?quality=low'])],
  ['hash', each(['/avatars/1/'], ['ab.png', 'aB.png', 'a_a_ab.png', 'AB.png'])],
  ['id', inAvatar(['1', '2', '10'])],
  [
    'resource',
    [
      ...each(['/avatars', '/icons', '/banners', '/splashes', '/embed-splashes'], ['/1/ab.webp']),
      ...['/emojis/1.webp', '/stickers/1.webp', '/attachments/1/1/ab.webp'],
      ...each(['/guilds/1/users/1/'], ['avatars/ab.webp', 'banners/ab.webp']),
    ],
  ],
  [
    'file name, one that looks like a key too',
    inFile([
      ...['a', 'A', 'e%CC%81', '%C3%A9', 'a?width=1', 'a%3Fwidth=1', 'a%3Fwidth=1?width=1'],
      ...['a%253Fwidth=1', 'a%3Fwidth=&height=&format=&quality=lossless&animated=false'],
      'a%3fwidth%3d1%26height=&format=&quality=lossless&animated=false?width=1',
    ]),
  ],
];

it.each(different)('targets have different keys by their %s', (_, targets) => {
  for (const target of targets) expectVerdict(target, {});
  expect(new Set(targets.map(keyOf)).size).toBe(targets.length);
});

describe.each(Object.keys(parameterNames) as QueryKind[])('the parameters of kind %s', (kind) => {
  it('are those of the contract, with defaults that change nothing', () => {
    const parameters = queryParameters[kind];
    expect(parameters.map(({ name }) => name)).toEqual(parameterNames[kind]);
    for (const { name, default: value } of parameters) {
      if (value === undefined) continue;
      expect(parseQuery(kind, `${name}=${value}`)).toEqual(parseQuery(kind, ''));
    }
  });
});

it('a message repeats what was received, but never much of it', () => {
  const parsed = parseQuery('image', `size=${'<b>🎉'.repeat(4000)}`);
  if (parsed.kind !== 'invalid') throw new Error(parsed.kind);
  const message = parsed.faults[0]?.message ?? '';
  expect(message).toContain('received "<b>🎉');
  expect(message.length).toBeLessThan(400);
});
