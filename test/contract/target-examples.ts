/** Targets that were read wrongly once, or that a careless reader would: examples of the properties beside them. */

import type { Verdict } from '../surface/contract-oracle.ts';

const AVATAR = '/avatars/1/ab';
const STICKER = '/stickers/1';
const FILE = '/attachments/1/2/name.png';

const noPaths = [
  ...['', '/', '//', '*', 'avatars/1/ab.png', '/avatars', '/avatars/', '/avatars/1/ab.png/'],
  ...['//avatars/1/ab.png', '/avatars//1/ab.png', '/Avatars/1/ab.png', '/avatars/1/2/ab.png'],
  ...['/avatar/1/ab.png', '/favicon.ico', '/robots.txt', '/emojis/1/ab.png', '/guilds/1/ab.png'],
  ...['/guilds/1/users/2/ab.png', '/guilds/1/users/2/icons/ab.png', '/__proto__/1/ab.png'],
  ...['/guilds/1/members/2/avatars/ab.png', '/attachments/1/2', '/attachments/1/2/3/name.png'],
  ...['/attachments/1/2/name.png/', '/attachments/1/2/../name.png', '/./avatars/1/ab.png'],
  ...['/icons/../avatars/1/ab.png', '/%ff/1/ab.png', '/avatars\\1\\ab.png', '/3.png'],
  ...['/../../etc/passwd', '/attachments/1/2/../../../etc/passwd', '/nothing/here.png?size=123'],
  ...['/attachments/1/2%2fname', '/attachments%2f1/2/name', '/%69cons%2f1%2fab.png'],
  ...['/avatars/avatars/3.png', '/avatars/users/ab.png', '/attachments/attachments/1/name.png'],
  ...['ftp://cdn.example/avatars/1/ab.png', '//cdn.example/avatars/1/a.png', 'http://cdn.example'],
  ...['http://cdn.example?/avatars/1/ab.png', 'http:///x/avatars/1/ab.png', '?/avatars/1/ab.png'],
  '#/avatars/1/ab.png',
];

/** Names at fault, and what is put where they stand. */
const refused: readonly (readonly [faults: string, before: string, after: string, string[]])[] = [
  ['user_id', '/avatars/', '/ab.png', ['-0', 'ff', '1_000', '1n', '%D9%A3', '9'.repeat(100), '']],
  ['emoji_id', '/emojis/', '.png', ['18446744073709551616', '1.0', '1%2f2', '1%0a', '%2e%2e']],
  ['index', '/avatars/', '.png', ['-1', '03', '3.0', 'three', '__proto__', '18446744073709551616']],
  ['icon_hash', '/icons/1/', '.png', ['a_', 'a~b', 'a%25b', 'a'.repeat(129), 'a.b', 'a%0a']],
  [
    'filename',
    '/attachments/1/2/',
    '',
    ['%2e%2E', '.%2e', '..%5cetc', '%1b[31m', '%c2%9f', '%u00e9'],
  ],
  // Raw characters beyond ASCII, of which lone surrogates broke the key.
  ['filename', '/attachments/1/2/', '', ['\ud800', '\u00c3\u00a9', '%ed%b0%80', '%c0%ae%c0%ae']],
  ['quality', `${AVATAR}.webp?quality=`, '', ['', 'High', 'lossless%20', 'high,low', '%256cow']],
  ['quality', `${AVATAR}.webp?quality=low&`, '', ['quality=low', 'v=1&qu%61lity=low', 'quality']],
  ['animated', `${STICKER}.webp?animated`, '', ['', '=', '=1', '=TRUE', '=+true', '=%74rue%0a']],
  [
    'size',
    `${AVATAR}.webp?size=`,
    '',
    ['', '128.', '+128', '128%00', '0x80', '%EF%BC%91%EF%BC%96'],
  ],
  ['width', `${FILE}?width=`, '', ['', '0', '4097', '01', '1e3', '1%0a', '%D9%A3', 'auto']],
  ['format', `${FILE}?format=`, '', ['', 'PNG', 'avif', 'image/png', '.png', 'png%20', 'original']],
  ['user_id avatar_hash', '/avatars/', '', ['%ff/%ff']],
  ['channel_id attachment_id filename', '/attachments/x/y/', '', ['%2f', '%ff']],
  ['index ext', '/avatars/x.gif', '', ['?size=123']],
  [
    'guild_id user_id avatar_hash ext size quality animated',
    ...(['/guilds/01/users/-1/avatars/a_.PNG', ''] as const),
    ['?animated=1&quality=HIGH&size=123'],
  ],
  [
    'channel_id attachment_id filename width height format quality animated',
    ...(['/attachments/-1/+1/%00', ''] as const),
    ['?animated=on&width=0&height=4097&format=PNG&quality=best'],
  ],
];

/** File names as they stand, and as they are. */
const filenames: Readonly<Record<string, string>> = {
  '%6eame%2Epng': 'name.png',
  'caf%C3%A9': 'café',
  '%E2%80%AEgpj.exe': '\u202egpj.exe',
  '%EF%BB%BFbom': '\ufeffbom',
  'a%20b+c': 'a b+c',
  'what%3Fwidth=1': 'what?width=1',
  '%23hash%26&=;:@!$,()*': '#hash&&=;:@!$,()*',
  '%252e%252e%252fetc': '%2e%2e%2fetc', // decoded once, and no more
  '%2500': '%00',
  '...': '...',
  '..%20': '.. ',
  __proto__: '__proto__',
  '{filename}.{ext}': '{filename}.{ext}',
  '$&$1$`': '$&$1$`',
  ['%F0%9F%8E%89'.repeat(63)]: '🎉'.repeat(63),
};

/** Targets, and what is known of their verdicts. */
export const examples: readonly (readonly [target: string, known: Partial<Verdict>])[] = [
  ...noPaths.map((target) => [target, { kind: 'unknown path' }] as const),
  ...refused.flatMap(([names, before, after, texts]) =>
    texts.map((text) => {
      return [`${before}${text}${after}`, { kind: 'refused', faults: names.split(' ') }] as const;
    }),
  ),
  ...Object.entries(filenames).map(
    ([text, filename]) => [`/attachments/1/2/${text}`, { kind: 'media', filename }] as const,
  ),
];

/** Pairs of targets, and whether they have one key. */
export const pairs: readonly (readonly [one: string, other: string, isAlike: boolean])[] = [
  ...(
    [
      [`${AVATAR}.webp?size=64&quality=low`, `${AVATAR}.webp?quality=low&size=64`],
      [`${AVATAR}.webp`, `${AVATAR}.webp?animated=false&quality=high&size=128`],
      [`${STICKER}.webp`, `${STICKER}.webp?quality=lossless&animated=true`],
      [`${FILE}?width=9`, `${FILE}?width=9&animated=false&quality=lossless`],
      [FILE, `${FILE}?animated=true&size=0`],
      [`${AVATAR}.webp`, `${AVATAR}.webp?%20size=1&size%00=1&SIZE=1&size[]=1&%2571uality=bad&%`],
      // After `??` the name begins with the second mark.
      [`${AVATAR}.webp`, `${AVATAR}.webp??size=123&width=0&format=exe`],
      ['/avatars/3.png', '/avatars/3.png?size=123&size=0&quality=bad'],
      [`${AVATAR}.jpg`, `${AVATAR}.jpeg?animated=true`],
      [`${AVATAR}.gif`, '/avatars/1/a_ab.gif?animated=false&quality=lossless'],
      [`${STICKER}.gif`, `${STICKER}.gif?quality=high&animated=false`],
      [`${FILE}?format=png`, `${FILE}?format=png&animated=true&quality=high`],
      [`${AVATAR}.png?size=64`, `HTTPS://user@cdn.example:8443${AVATAR}.png?s%69ze=%36%34#size=16`],
      [`${AVATAR}.png`, '/%61vatars/%31/%61b%2Epng'],
      ['/attachments/1/2/%C3%A9.png', '/attachments/1/2/%c3%a9%2e%70ng'],
    ] as const
  ).map(([one, other]) => [one, other, true] as const),
  ...(
    [
      [`${STICKER}.webp`, `${STICKER}.webp?size=128`],
      [`${STICKER}.webp`, `${STICKER}.webp?animated=false`],
      [`${AVATAR}.webp`, `${AVATAR}.webp?animated=true`],
      [`${AVATAR}.png`, `${AVATAR}.png?quality=low`],
      [`${AVATAR}.gif`, `${AVATAR}.gif?quality=low`],
      [`${FILE}?format=gif`, `${FILE}?format=gif&animated=true`],
      [`${FILE}?width=9`, `${FILE}?width=9&animated=true`],
      [`${FILE}?width=9&height=8`, `${FILE}?width=8&height=9`],
      [FILE, `${FILE}?quality=high`],
      ['/avatars/1/ab.png', '/avatars/1/aB.png'],
      ['/avatars/1/ab.gif', '/avatars/1/a_a_ab.gif'],
      ['/avatars/1/ab.webp', '/icons/1/ab.webp'],
      ['/attachments/1/2/e%CC%81', '/attachments/1/2/%C3%A9'],
      // Names that look like keys.
      ['/attachments/1/2/a%3Fwidth=1', '/attachments/1/2/a?width=1'],
      ['/attachments/1/2/a%3Fwidth=1', '/attachments/1/2/a%253Fwidth=1'],
      [
        '/attachments/1/2/a%3fwidth%3d1%26height=&format=&quality=lossless&animated=false?width=1',
        '/attachments/1/2/a?width=1',
      ],
    ] as const
  ).map(([one, other]) => [one, other, false] as const),
];
