import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { readProfileName } from '../../src/formats/embedded-profile.ts';

const plain = () => sharp({ create: { width: 4, height: 4, channels: 3, background: 'red' } });

describe('the name of a colour profile', () => {
  test.each(['jpeg', 'png', 'webp', 'avif'] as const)('is read from %s', async (format) => {
    const file = await plain().withIccProfile('p3').toFormat(format).toBuffer();
    expect(readProfileName(file)).toMatch(/P3/);
  });

  test.each(['jpeg', 'png', 'webp', 'gif'] as const)(
    'is nothing where %s has none',
    async (format) => {
      expect(readProfileName(await plain().toFormat(format).toBuffer())).toBeUndefined();
    },
  );

  test('is read from a photograph', async () => {
    const file = await readFile('fixtures/originals/avatars/1/ab12');
    expect(readProfileName(file)).toBe('sRGB IEC61966-2.1');
  });

  test('is empty where the profile is cut, or is none at all', async () => {
    const file = await plain().withIccProfile('p3').webp().toBuffer();
    const at = file.indexOf('ICCP') + 8;
    for (const [from, length, byte] of [
      [128, 4, 0], // the number of its tags
      [132, 200, 0xff], // the tags
    ] as const) {
      const broken = Buffer.from(file).fill(byte, at + from, at + from + length);
      expect(readProfileName(broken)).toBe('');
    }
    const png = await plain().withIccProfile('p3').png().toBuffer();
    const start = png.indexOf('iCCP') + 4;
    expect(readProfileName(Buffer.from(png).fill(0, start + 20, start + 60))).toBe('');
  });

  test.each([
    '',
    'no image',
    '\xff\xd8\xff\xe2',
    'RIFF\0\0\0\0WEBPICCP\xff\xff\xff\xff',
    '\0\0\0\x18ftypheic',
  ])('is not looked for further than the file goes: %j', (text) => {
    expect(readProfileName(Buffer.from(text, 'latin1')) ?? '').toBe('');
  });
});
