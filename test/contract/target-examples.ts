/**
 * Targets that were read wrongly once, or that a careless reader would: examples of the properties beside them. What is no
 * path, or has a fault, test/surface/contract-requests.ts draws.
 */

import type { Verdict } from '../surface/contract-oracle.ts';

const AVATAR = '/avatars/1/ab';
const STICKER = '/stickers/1';
const FILE = '/attachments/1/2/name.png';

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
  ...Object.entries(filenames).map(
    ([text, filename]) => [`/attachments/1/2/${text}`, { kind: 'media', filename }] as const,
  ),
  ...['%2B64', '64%0A', '%EF%BC%91'].map(
    (text) => [`${FILE}?width=${text}`, { kind: 'refused', faults: ['width'] }] as const,
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
