/** Targets that were parsed incorrectly once, or easily are; contract-requests.ts draws invalid and unknown ones. */

import type { Verdict } from '../surface/contract-oracle.ts';

const AVATAR = '/avatars/1/ab';
const FILE = '/attachments/1/2/name.png';

/** File names, percent-encoded and decoded. */
const filenames: Readonly<Record<string, string>> = {
  '%EF%BB%BFbom': '\ufeffbom',
  'a%20b+c': 'a b+c',
  '%23hash%26&=;:@!$,()*': '#hash&&=;:@!$,()*',
  '{filename}.{ext}': '{filename}.{ext}',
  '$&$1$`': '$&$1$`',
  ['%F0%9F%8E%89'.repeat(63)]: '🎉'.repeat(63),
};

/** Targets and their expected verdicts. */
export const examples: readonly (readonly [target: string, known: Partial<Verdict>])[] = [
  ...Object.entries(filenames).map(
    ([text, filename]) => [`/attachments/1/2/${text}`, { kind: 'media', filename }] as const,
  ),
  ...['%2B64', '64%0A', '%EF%BC%91'].map(
    (text) => [`${FILE}?width=${text}`, { kind: 'refused', faults: ['width'] }] as const,
  ),
];

/** Pairs of targets, and whether they share a result key. */
export const pairs: readonly (readonly [one: string, other: string, isAlike: boolean])[] = [
  ...(
    [
      [`${AVATAR}.webp`, `${AVATAR}.webp?%20size=1&size%00=1&SIZE=1&size[]=1&%2571uality=bad&%`],
      // In `??`, the second mark is the first character of the name.
      [`${AVATAR}.webp`, `${AVATAR}.webp??size=123&width=0&format=exe`],
      ['/avatars/3.png', '/avatars/3.png?size=123&size=0&quality=bad'],
    ] as const
  ).map(([one, other]) => [one, other, true] as const),
  ...(
    [
      ['/avatars/1/ab.gif', '/avatars/1/a_a_ab.gif'],
      ['/attachments/1/2/e%CC%81', '/attachments/1/2/%C3%A9'],
      // File names that resemble result keys.
      ['/attachments/1/2/a%3Fwidth=1', '/attachments/1/2/a?width=1'],
      ['/attachments/1/2/a%3Fwidth=1', '/attachments/1/2/a%253Fwidth=1'],
      [
        '/attachments/1/2/a%3fwidth%3d1%26height=&format=&quality=lossless&animated=false?width=1',
        '/attachments/1/2/a?width=1',
      ],
    ] as const
  ).map(([one, other]) => [one, other, false] as const),
];
