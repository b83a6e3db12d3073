import sharp from 'sharp';
import { expect, test } from 'vitest';
import { PIPELINE_RELEASE } from '../../src/contract/image-formats.ts';

// Fails when an upgrade changes the codecs: the bytes may then be others, and so must the ETags.
test('the pipeline release names the codecs that are installed', () => {
  const { sharp: version, vips } = sharp.versions;
  expect(PIPELINE_RELEASE).toMatch(/^\d+-/);
  expect(PIPELINE_RELEASE.replace(/^\d+-/, '')).toBe(`sharp${version}-vips${vips}`);
});
