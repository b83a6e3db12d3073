import { expect, test } from 'vitest';
import { translate } from '../../../bench/compare/trace-requests.ts';

const HASH = '0123456789abcdef0123456789abcdef';

test.each([
  ['a still avatar', `/avatars/1/${HASH}.webp?size=80`, `/w_80,f_webp/avatars/1/${HASH}`],
  [
    'a moving avatar, whose prefix is not part of the key',
    `/avatars/1/a_${HASH}.webp?size=80&animated=true`,
    `/w_80,f_webp,animated/avatars/1/${HASH}`,
  ],
  ['an emoji', '/emojis/1.gif?size=48', '/w_48,f_gif,animated/emojis/1'],
  [
    'an attachment',
    '/attachments/1/2/image-3?format=webp&quality=high&width=400',
    '/w_400,f_webp/attachments/1/2/image-3',
  ],
])('%s is asked of both for the same', (_, target, ipx) => {
  expect(translate(target)).toEqual({ darkroom: target, ipx });
});

test('a sticker is asked for with a quality that both have', () => {
  expect(translate('/stickers/1.webp?size=160')).toEqual({
    darkroom: '/stickers/1.webp?size=160&quality=high',
    ipx: '/w_160,f_webp,animated/stickers/1',
  });
  expect(translate('/stickers/1.webp')?.darkroom).toBe('/stickers/1.webp?quality=high');
});

test('an attachment that is served as it is is no rendering', () => {
  expect(translate('/attachments/1/2/image-3')).toBeUndefined();
});
