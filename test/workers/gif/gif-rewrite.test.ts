import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { rewriteGif } from '../../../src/formats/gif/gif-frames.ts';
import type { Size } from '../../../src/formats/image-header.ts';
import { decodeGif } from '../../../src/workers/child/gif/decode-gif.ts';
import { join, u16le } from '../../formats/containers.ts';
import { corpusFile, corpusFiles, headerOf, verdictOn } from '../../formats/header-of.ts';
import { BitWriter } from '../../hostile/bombs/bomb.ts';
import { gifSubBlocks } from '../../hostile/bombs/gif-bombs.ts';
import { control, drawGif } from '../../support/images/draw-gif.ts';
import { readGifImages } from '../../support/images/read-gif.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import { shareTestApp } from '../../support/test-app.ts';

const gifs = corpusFiles('gif-animated', 'gif-delays', 'gif-static', 'emoji-small').filter((file) =>
  file.endsWith('.gif'),
);

/** Inserts a comment, a text, XMP and data of another application before the first block, and junk after the last. */
function withHiddenData(gif: Buffer): Buffer {
  const flags = gif[10] ?? 0;
  const first = 13 + ((flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7)));
  return join(
    gif.subarray(0, first),
    '!\xfe\x06secret\x00!\xff\x0bXMP DataXMP\x06secret\x00!\xff\x0bSECRET 1.0.\x02\x01\x02\x00',
    ...['!\x01\x0c', Buffer.alloc(12), '\x06secret\x00'],
    ...[gif.subarray(first), 'secret'],
  );
}

function rewrite(gif: Buffer): Buffer {
  const { widthPx, heightPx, animation } = headerOf(gif);
  return Buffer.from(rewriteGif(gif, { widthPx, heightPx }, animation));
}

/** A still of ten pixels with a comment, from 3-bit codes with a clear code before each index. */
function ofCodes(...codes: readonly number[]): Buffer {
  const writer = new BitWriter();
  for (const code of codes) writer.write(code, 3);
  return join(
    ...['GIF89a', u16le(10, 1), 0xf1, 0, 0, Buffer.alloc(12, 90), '!\xfe\x01a\x00'],
    ...[',', u16le(0, 0, 10, 1), 0, 2, gifSubBlocks(writer.toBuffer()), ';'],
  );
}

async function decode(gif: Buffer, originalSize: Size): Promise<string> {
  const digest = createHash('sha256');
  for await (const { data } of decodeGif(gif, { originalSize }, 1)) digest.update(data);
  return digest.digest('hex');
}

const corrupt = expect.objectContaining({ code: 'UNPROCESSABLE_MEDIA' });
const indices = (count: number): number[] => Array.from({ length: count }, () => [4, 1]).flat();
const frame = { widthPx: 2, pixels: [0, 1] } as const;
const screen = { widthPx: 2, heightPx: 1, indexBits: 2 } as const;

describe('a rewritten GIF', () => {
  test.each(gifs)('shows the same frames, and has no other data: %s', async (file) => {
    const original = withHiddenData(corpusFile(file));
    const header = headerOf(original);
    if (header.isRewritable !== true) return;
    const written = rewrite(original);
    expect(headerOf(written)).toEqual({ ...header, isClean: true });
    expect(/secret/i.test(written.toString('latin1'))).toBe(false);
    expect(await decode(written, header)).toBe(await decode(original, header));
  });

  test('keeps the delay and disposal of each frame, and has no delay for a still', () => {
    const frames = [
      { ...frame, controls: [control(0x0d, 5, 3)] },
      { ...frame, controls: [control(0x01, 9, 2), control(0x08, 7)] },
      frame,
    ];
    const written = rewrite(drawGif({ ...screen, repeats: 6, frames }));
    expect(headerOf(written).animation).toEqual({ delaysMs: [50, 70, 100], plays: 7 });
    expect(readGifImages(written)).toMatchObject([
      { disposal: 3, transparent_index: 3 },
      { disposal: 2, transparent_index: null },
      { disposal: 0, transparent_index: null },
    ]);
    expect(rewrite(drawGif({ ...screen, frames: [frame] })).includes('!')).toBe(false);
  });

  test('has a size that includes its first frame', () => {
    const wider = { widthPx: 3, pixels: [0, 1, 2] };
    expect([...rewrite(drawGif({ ...screen, frames: [wider] })).subarray(6, 10)]).toEqual([
      3, 0, 1, 0,
    ]);
  });

  test('ends with its codes, without hidden bytes after them', () => {
    const gif = ofCodes(...indices(10), 5);
    const longer = join(gif.subarray(0, -2), '\x06secret', gif.subarray(-2));
    expect(rewrite(longer)).toEqual(rewrite(gif));
    expect(rewrite(longer)).toHaveLength(gif.length - 5);
  });
});

describe('the image data of a GIF', () => {
  test.each([
    ['accepted if it is complete', [...indices(10), 5], true],
    ['accepted without an end', indices(10), true],
    ['accepted if it is too short, as decoders do', [...indices(5), 5], true],
    ['accepted with an unknown code after the last pixel', [...indices(10), 7], true],
    ['rejected with an unknown code in the middle', [...indices(5), 7, ...indices(5), 5], false],
    ['rejected with an unknown code after a clear', [4, 6, ...indices(10), 5], false],
    ['rejected with an end after a clear', [...indices(5), 4, 5], false],
  ] as const)('is %s', async (_, codes, isValid) => {
    const gif = ofCodes(...codes);
    const decoding = sharp(gif, { failOn: 'warning' }).raw().toBuffer();
    await (isValid ? decoding : expect(decoding).rejects.toThrow('Invalid frame data'));
    if (isValid) expect(rewrite(gif).includes('!')).toBe(false);
    else expect(() => rewrite(gif)).toThrow(corrupt);
  });

  test('is rejected exactly if the decoder rejects it', async () => {
    const verdicts = { valid: 0, damaged: 0 };
    for (let seed = 0; seed < 400; seed += 1) {
      const random = createSeededRandom(`damage:${seed}`);
      const [widthPx, heightPx] = [1 + random.integer(80), 1 + random.integer(80)];
      const nibble = () => random.integer(16) & random.integer(16);
      const pixels = Array.from({ length: widthPx * heightPx }, nibble);
      const left = random.integer(3) === 0 ? random.integer(20) : 0;
      const gif = drawGif({
        ...{ widthPx: Math.max(1, widthPx - random.integer(3)), heightPx, indexBits: 4 },
        frames: [
          { widthPx: 1, pixels: [0] },
          { widthPx, pixels, left, top: left },
        ],
      });
      const at = gif.length - 2 - random.integer(Math.max(1, Math.floor(gif.length / 2)));
      gif[at] = (gif[at] ?? 0) ^ (1 << random.integer(8));
      const header = verdictOn(gif); // a text if a sub-block does not end
      if (typeof header === 'string' || header.isRewritable !== true || header.frames < 2) continue;
      const decoding = sharp(gif, { failOn: 'warning', animated: true }).raw().toBuffer();
      const isDecoded = await decoding.then(
        () => true,
        () => false,
      );
      verdicts[isDecoded ? 'valid' : 'damaged'] += 1;
      if (isDecoded) rewrite(gif);
      else expect(() => rewrite(gif), `seed ${seed}`).toThrow(corrupt);
    }
    expect(Math.min(verdicts.valid, verdicts.damaged)).toBeGreaterThan(10);
  });
});

const app = shareTestApp();

test('renders a GIF instead of rewriting it if decoders disagree about it', async () => {
  const gif = drawGif({ ...screen, frames: [frame] });
  const colourless = join(gif.subarray(0, 10), 0, gif.subarray(11, 13), gif.subarray(25));
  expect(headerOf(colourless).isRewritable).toBe(false);
  const served = await app.serve(join(colourless, 'junk'), '/avatars/{id}/x.gif');
  expect([served.statusCode, (served.rawPayload[10] ?? 0) & 0x80]).toEqual([200, 0x80]);
});
