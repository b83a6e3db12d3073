import { describe, expect, it } from 'vitest';
import { readImageHeader } from '../../src/formats/containers.ts';
import { readRangedHeader } from '../../src/formats/ranged-header.ts';
import { afterIhdr, join, pngChunk, riffChunk, vp8x, webpFile } from './containers.ts';
import { corpusCategories, corpusFile, corpusFiles } from './header-of.ts';

const BLOCK_BYTES = 64 * 1024;

/** Reads a header from a source that counts ranges, and bytes in blocks, as the cache of originals fetches them. */
async function readHead(file: Uint8Array) {
  const blocks = new Set<number>();
  let ranges = 0;
  const head = await readRangedHeader({
    sizeBytes: file.length,
    read: async (start, end) => {
      const before = blocks.size;
      for (let at = start - (start % BLOCK_BYTES); at < end; at += BLOCK_BYTES) blocks.add(at);
      ranges += blocks.size > before ? 1 : 0;
      return file.subarray(start, end);
    },
  });
  return { head, ranges, bytes: blocks.size * BLOCK_BYTES };
}

// CMYK profiles are longer than 256 KiB, so that the size is known only from the complete file.
const valid = corpusCategories.filter((name) => !/hostile|fuzz|cmyk/.test(name));

describe('the header that is read by ranges', () => {
  it.each(valid)('equals that of the complete file: %s', async (category) => {
    for (const name of corpusFiles(category)) {
      const file = corpusFile(name);
      const complete = readImageHeader(file);
      if (complete === undefined) continue;
      const { widthPx, heightPx, orientation, format } = complete;
      const { head, ranges, bytes } = await readHead(file);
      expect({ name, ...head?.header }).toMatchObject({ name, widthPx, heightPx, orientation });
      if (head?.isStill) expect(format).toBe(head.header.format);
      if (complete.frames > 1) expect(head?.isStill).toBe(false);
      expect(ranges).toBeLessThanOrEqual(3);
      expect(bytes).toBeLessThanOrEqual(4 * BLOCK_BYTES);
    }
  });

  it('has the orientation of a WebP whose EXIF follows megabytes of pixels', async () => {
    const exif = Buffer.from('49492a0008000000010012010300010000000600000000000000', 'hex');
    const pixels = join(Buffer.from('2f00000000888808', 'hex'), Buffer.alloc(2 ** 21));
    const file = webpFile(vp8x(8, 1, 1), riffChunk('VP8L', pixels), riffChunk('EXIF', exif));
    const { head, ranges, bytes } = await readHead(file);
    expect(head).toMatchObject({ header: { orientation: 6 }, isStill: true });
    expect(ranges).toBeLessThanOrEqual(3);
    expect(bytes).toBeLessThanOrEqual(4 * BLOCK_BYTES);
  });

  it('has the size of a PNG that ends, or whose prefix ends, before the pixels', async () => {
    const png = corpusFile('png-8/imagers__debug_triangle_corners_widescreen.png');
    const { widthPx, heightPx } = readImageHeader(png) ?? {};
    const long = afterIhdr(png, pngChunk('teXt', Buffer.alloc(2 ** 20)));
    for (const file of [png.subarray(0, 40), long]) {
      const { head, bytes } = await readHead(file);
      expect(head?.header).toMatchObject({ widthPx, heightPx });
      expect(bytes).toBeLessThanOrEqual(4 * BLOCK_BYTES);
    }
  });
});
