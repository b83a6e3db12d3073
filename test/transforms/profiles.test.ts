import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { afterIhdr, pngChunk, u32be } from '../formats/containers.ts';
import { createProfile, createTableProfile } from '../support/images/icc-profile.ts';
import {
  drawSwatches,
  EDGE_PX,
  hasAvifenc,
  largestDifference,
  profileRows,
  readExpected,
  readShown,
  TOLERANCE,
  withProfile,
} from '../support/images/profile-swatches.ts';
import { shareTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

/** lcms2 goes by a coarser table than the profile's own, and by another one for each depth. */
const TABLE_TOLERANCE = 8;

/** Of 8 bits that were multiplied by their alpha, scaled, and divided by it. */
const SCALED_ALPHA_TOLERANCE = 3;

/** Of each depth, one with a profile that shows a mistake. */
const fewRows = profileRows.filter(({ form, space }) =>
  form === 'grey PNG of 16 bits'
    ? space === 'grey of gamma 1.8'
    : ['JPEG', 'PNG of 16 bits', 'AVIF of 10 bits'].includes(form) && space === 'AdobeRGB',
);

const fewUnusable = { 'of an unknown version': patched('\x63', 8) };

const allUnusable = {
  ...fewUnusable,
  'for grey': createProfile('grey'),
  'for CMYK': patched('CMYK', 16),
  'without a signature': patched('XXXX', 36),
  'without curves': withoutTags('TRC'),
  'without primaries': withoutTags('XYZ'),
  'of thousands of tags': patched('\0\0\xff\xff', 128),
  'that is cut off': createProfile('AdobeRGB').subarray(0, 300),
  'that is text': Buffer.from('no profile at all, but a text of some length. '.repeat(20)),
};

/** Each in forms of 8 bits and of more. */
const unusableRows = Object.entries(atScale(fewUnusable, allUnusable)).flatMap(([what, profile]) =>
  ['PNG of 8 bits', 'PNG of 16 bits', 'AVIF of 8 bits', 'AVIF of 12 bits', 'JPEG'].map((form) => ({
    what,
    profile,
    form,
  })),
);

/** A profile of AdobeRGB with other bytes at one place. */
function patched(text: string, at: number): Buffer {
  const profile = createProfile('AdobeRGB');
  profile.write(text, at, 'latin1');
  return profile;
}

/** The same without the tags whose names end so. */
function withoutTags(ending: string): Buffer {
  const profile = createProfile('AdobeRGB');
  for (const channel of ['r', 'g', 'b']) {
    profile.write('none', profile.indexOf(`${channel}${ending}`), 'latin1');
  }
  return profile;
}

/** The file with other bytes, of the same length or less, in the place of some. */
function replace(file: Buffer, bytes: Uint8Array, others: Uint8Array): Buffer {
  const at = file.indexOf(bytes);
  if (at < 0) throw new Error('Expected the profile in the file but found none');
  const changed = Buffer.from(file).fill(0, at, at + bytes.length);
  changed.set(others, at);
  return changed;
}

// Of inks, the goldens colour/cmyk-* tell. The standards' colours are computed in double precision, without a colour library.
describe('what the service shows of a file with a profile', () => {
  const app = shareTestApp();

  const render = async (original: Uint8Array, query: string): Promise<number[][]> => {
    const { statusCode, rawPayload } = await app.serve(original, `/attachments/1/{id}/x${query}`);
    expect(statusCode).toBe(200);
    return await readShown(rawPayload);
  };

  test.for(atScale(fewRows, profileRows))('colours of $space in a $form', async (row, { skip }) => {
    skip(row.form.startsWith('grey AVIF') && !hasAvifenc, 'avifenc is not installed');
    const original = await row.draw();
    const expected = await readExpected(original, row);
    const scaled = row.hasAlpha ? SCALED_ALPHA_TOLERANCE : TOLERANCE;
    for (const [query, tolerance] of [
      ['?format=webp', TOLERANCE],
      [`?format=png&width=${EDGE_PX / 2}`, scaled],
    ] as const) {
      const shown = await render(original, query);
      expect(largestDifference(shown, expected), query).toBeLessThanOrEqual(tolerance);
    }
  });

  test.each(unusableRows)('a profile $what changes no $form', async ({ profile, form }) => {
    const valid = createProfile('AdobeRGB');
    const plain = await drawSwatches(form, undefined);
    const original = form.startsWith('PNG')
      ? withProfile(plain, profile)
      : replace(await drawSwatches(form, valid), valid, profile);
    const shown = await render(original, '?format=webp');
    expect(largestDifference(shown, await render(plain, '?format=webp'))).toBe(0);
  });

  test('a gamma is applied to millions of pixels', async () => {
    const [widthPx, heightPx] = [4096, 3072];
    const grey = await sharp({
      create: { width: widthPx, height: heightPx, channels: 3, background: '#010101' },
    })
      .png({ compressionLevel: 1 })
      .toBuffer();
    const linear = afterIhdr(grey, pngChunk('gAMA', u32be(100_000)));
    // sRGB of a light of 1 / 255
    expect((await render(linear, '?format=webp&width=1200'))[0]).toEqual([13, 13, 13]);
  });

  test('colours of a profile that is a table are in 16 bits what they are in 8', async () => {
    const plain = await drawSwatches('PNG of 8 bits', createTableProfile('AdobeRGB'));
    const deep = await sharp(plain).keepIccProfile().toColourspace('rgb16').png().toBuffer();
    const shown = await render(deep, '?format=webp');
    const expected = await render(plain, '?format=webp');
    expect(largestDifference(shown, expected)).toBeLessThanOrEqual(TABLE_TOLERANCE);
  });
});
