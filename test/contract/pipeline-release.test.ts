import sharp from 'sharp';
import { expect, test } from 'vitest';
import { PIPELINE_RELEASE } from '../../src/contract/image-formats.ts';

// Fails after an upgrade of a codec: the bytes of responses may change, so the ETags must change.
test('the pipeline release contains the versions of the installed codecs', () => {
  const { sharp: version, vips } = sharp.versions;
  expect(PIPELINE_RELEASE).toMatch(/^\d+-/);
  expect(PIPELINE_RELEASE.replace(/^\d+-/, '')).toBe(`sharp${version}-vips${vips}`);
});
