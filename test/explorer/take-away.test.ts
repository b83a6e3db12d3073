import { describe, expect, test } from 'vitest';
import {
  fileNameOf,
  formatBbcode,
  formatMarkdown,
  formatSrcset,
} from '../../src/explorer/page/take-away.ts';
import { attachmentNamed, avatarIn } from './explorer-choices.ts';

const origin = 'https://cdn.example';
const size = { width: 128, height: 96 };

describe('an image with srcset', () => {
  test('has the same at twice the size', () => {
    const choice = avatarIn('webp', { size: '256', quality: 'low' });
    expect(formatSrcset({ choice, origin, size })).toBe(
      '<img src="https://cdn.example/avatars/1/ab12.webp?size=256&amp;quality=low" srcset="https://cdn.example/avatars/1/ab12.webp?size=256&amp;quality=low 1x, https://cdn.example/avatars/1/ab12.webp?size=512&amp;quality=low 2x" width="128" height="96" alt="">',
    );
  });

  test.each([
    [avatarIn('webp'), '?size=256 2x'], // of the default
    [avatarIn('webp', { size: '1536' }), '?size=3072 2x'],
    [avatarIn('webp', { size: '80' }), '?size=160 2x'],
    [avatarIn('webp', { size: '600' }), '?size=1280 2x'], // the next one that is listed
    [attachmentNamed('a.png', { width: '300' }), '?width=600 2x'],
    [attachmentNamed('a.png', { width: '30', height: '20' }), '?width=60&amp;height=40 2x'],
  ])('asks for a size that there is: %j', (choice, end) => {
    expect(formatSrcset({ choice, origin })).toContain(`${end}"`);
  });

  test.each([
    avatarIn('webp', { size: '4096' }),
    attachmentNamed('a.png'),
    attachmentNamed('a.png', { width: '2049' }),
  ])('has none where none is twice as large: %j', (choice) => {
    expect(formatSrcset({ choice, origin })).toMatch(/srcset="[^ ]+ 1x" alt="">$/);
  });
});

test.each([
  [avatarIn('webp'), '![ab12](https://cdn.example/avatars/1/ab12.webp)'],
  [
    attachmentNamed('a](x) [1].png'),
    '![a\\](x) \\[1\\].png](https://cdn.example/attachments/1/2/a%5D%28x%29%20%5B1%5D.png)',
  ],
])('Markdown ends where it is written: %j', (choice, text) => {
  expect(formatMarkdown({ choice, origin })).toBe(text);
});

test('BBCode has the URL alone', () => {
  expect(formatBbcode({ choice: avatarIn('webp'), origin })).toBe(
    '[img]https://cdn.example/avatars/1/ab12.webp[/img]',
  );
});

test.each([
  [avatarIn('webp'), 'ab12.webp'],
  [avatarIn('jpeg'), 'ab12.jpeg'],
  [attachmentNamed('cat photo.final.png'), 'cat photo.final.png'],
  [attachmentNamed('cat photo.final.png', { format: 'webp' }), 'cat photo.final.webp'],
  [attachmentNamed('README', { format: 'webp' }), 'README.webp'],
])('a download has its own name: %j', (choice, name) => {
  expect(fileNameOf(choice)).toBe(name);
});
