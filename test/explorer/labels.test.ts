import { describe, expect, test } from 'vitest';
import { resourceRows } from '../../src/contract/resources.ts';
import { formatHeading } from '../../src/explorer/page/labels.ts';

describe('the heading of a kind', () => {
  test.each([
    ['user avatar', 'Avatars'],
    ['member banner', 'Members’ banners'],
    ['sticker', 'Stickers'],
    ['default avatar', 'Default avatars'],
    ['role icon', 'Role icons'],
    ['discovery splash', 'Discovery splashes'],
  ])('of "%s" is "%s"', (kind, heading) => {
    expect(formatHeading(kind)).toBe(heading);
  });

  test('is its own', () => {
    const kinds = Object.keys(resourceRows);
    expect(new Set(kinds.map(formatHeading)).size).toBe(kinds.length);
  });
});
