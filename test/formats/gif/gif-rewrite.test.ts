import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { gifLabel, walkGifBlocks } from '../../../src/formats/gif/gif-blocks.ts';
import { repairGif } from '../../../src/formats/gif/gif-repair.ts';
import { rewriteGif } from '../../../src/formats/gif/gif-rewrite.ts';
import { control, drawGif } from '../../support/images/draw-gif.ts';
import { compareImages, decodeImage } from '../../support/images/image-comparison.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import { shareTestApp } from '../../support/test-app.ts';
import { join, u16le } from '../containers.ts';
import { corpusFile, corpusFiles, factsOf } from '../facts-of.ts';

const gifs = corpusFiles('gif-animated', 'gif-delays', 'gif-static', 'emoji-small').filter((file) =>
  file.endsWith('.gif'),
);

/** Puts a comment, a text, XMP and another application's data before the first block, and junk after the last. */
function soil(gif: Buffer): Buffer {
  const flags = gif[10] ?? 0;
  const first = 13 + ((flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7)));
  return join(
    gif.subarray(0, first),
    ...[
      '!\xfe\x06secret\x00',
      '!\xff\x0bXMP DataXMP\x06secret\x00',
      '!\xff\x0bSECRET 1.0.\x02\x01\x02\x00',
    ],
    ...['!\x01\x0c', Buffer.alloc(12), '\x06secret\x00'],
    gif.subarray(first),
    'secret',
  );
}

function rewrite(gif: Buffer): Buffer {
  const { widthPx, heightPx, animation } = factsOf(gif);
  return Buffer.from(rewriteGif(gif, { widthPx, heightPx }, animation));
}

/** What codes of three bits say, a clear before each index, as a still of so many pixels. */
function ofCodes(codes: readonly number[], widthPx = 10): Buffer {
  const bits = codes.flatMap((code) => [code & 1, (code >> 1) & 1, code >> 2]);
  const bytes = Array.from({ length: Math.ceil(bits.length / 8) }, (_, at) =>
    bits.slice(8 * at, 8 * at + 8).reduce((sum, bit, place) => sum | (bit << place), 0),
  );
  return join(
    ...['GIF89a', u16le(widthPx, 1), 0xf1, 0, 0, Buffer.alloc(12, 90), '!\xfe\x01a\x00'],
    ...[',', u16le(0, 0, widthPx, 1), 0, 2, bytes.length, Buffer.from(bytes), 0, ';'],
  );
}

const corrupt = expect.objectContaining({ code: 'UNPROCESSABLE_MEDIA' });

const indices = (count: number): number[] =>
  Array.from({ length: 2 * count }, (_, at) => (at % 2 ? 1 : 4));

describe('a GIF that is written anew', () => {
  test.each(gifs)('shows the same frames, and nothing else: %s', async (file) => {
    const original = soil(corpusFile(file));
    const facts = factsOf(original);
    if (facts.isRewritable !== true) return;
    const written = rewrite(original);
    expect(factsOf(written)).toEqual({ ...facts, isClean: true });
    expect(/secret/i.test(written.toString('latin1'))).toBe(false);
    const repaired = repairGif(original, facts);
    const [wanted, shown] = [
      await decodeImage(repaired),
      await decodeImage(rewrite(Buffer.from(repaired))),
    ];
    expect(compareImages(wanted, shown, 'exact')).toEqual([]);
  });

  test('says of each frame what it said, and of a still no time', () => {
    const frame = { widthPx: 2, pixels: [0, 1] } as const;
    const gif = drawGif({
      ...{ widthPx: 2, heightPx: 1, indexBits: 2, repeats: 6 },
      frames: [
        { ...frame, controls: [control(0x0d, 5, 3)] },
        { ...frame, controls: [control(0x01, 9, 2), control(0x08, 7)] },
        frame,
      ],
    });
    const written = rewrite(gif);
    expect(factsOf(written).animation).toEqual({ delaysMs: [50, 70, 100], plays: 7 });
    const controls = readControls(written);
    expect(controls).toEqual([
      [0x0d, 3],
      [0x09, 2], // the decoder keeps what the first one says of transparency
      [0x00, 0],
    ]);
    const still = rewrite(drawGif({ widthPx: 2, heightPx: 1, indexBits: 2, frames: [frame] }));
    expect(still.includes('!')).toBe(false);
  });

  test('has the size that its first frame gives it', () => {
    const frame = { widthPx: 3, pixels: [0, 1, 2] } as const;
    const gif = drawGif({ widthPx: 2, heightPx: 1, indexBits: 2, frames: [frame] });
    expect([...rewrite(gif).subarray(6, 10)]).toEqual([3, 0, 1, 0]);
  });

  test('ends where its codes end, whatever follows in the same data', () => {
    const [gif, secret] = [ofCodes([...indices(10), 5]), Buffer.from('\x06secret')];
    const end = gif.length - 2;
    const longer = Buffer.concat([gif.subarray(0, end), secret, gif.subarray(end)]);
    expect(rewrite(longer)).toEqual(rewrite(gif));
    expect(rewrite(longer)).toHaveLength(gif.length - 5);
  });
});

/** Packed field and index of each graphic control extension. */
function readControls(gif: Uint8Array): number[][] {
  const controls: number[][] = [];
  walkGifBlocks(gif, {
    onExtension: (label, start) => {
      if (label === gifLabel.graphicControl)
        controls.push([gif[start + 3] ?? 0, gif[start + 6] ?? 0]);
    },
  });
  return controls;
}

describe('data that are no picture', () => {
  test.each([
    { name: 'all there', codes: [...indices(10), 5], isSound: true },
    { name: 'without an end', codes: indices(10), isSound: true },
    { name: 'too short, which decoders forgive', codes: [...indices(5), 5], isSound: true },
    {
      name: 'an unknown code in the middle',
      codes: [...indices(5), 7, ...indices(5), 5],
      isSound: false,
    },
    { name: 'an unknown code after a clear', codes: [4, 6, ...indices(10), 5], isSound: false },
    { name: 'an end after a clear', codes: [...indices(5), 4, 5], isSound: false },
    { name: 'an unknown code behind the last pixel', codes: [...indices(10), 7], isSound: true },
  ])('are $name', async ({ codes, isSound }) => {
    const gif = ofCodes(codes);
    const decoding = sharp(gif, { failOn: 'warning' }).raw().toBuffer();
    await (isSound ? decoding : expect(decoding).rejects.toThrow('Invalid frame data'));
    if (isSound) expect(rewrite(gif).includes('!')).toBe(false);
    else expect(() => rewrite(gif)).toThrow(corrupt);
  });

  test('are refused exactly where the decoder refuses them', async () => {
    const verdicts = { sound: 0, damaged: 0 };
    for (let seed = 0; seed < 400; seed += 1) {
      const random = createSeededRandom(`damage:${seed}`);
      const [widthPx, heightPx] = [1 + random.integer(80), 1 + random.integer(80)];
      const pixels = Array.from(
        { length: widthPx * heightPx },
        () => random.integer(16) & random.integer(16),
      );
      const left = random.integer(3) === 0 ? random.integer(20) : 0;
      const small = { widthPx: 1, pixels: [0] };
      const gif = drawGif({
        ...{ widthPx: Math.max(1, widthPx - random.integer(3)), heightPx, indexBits: 4 },
        frames: [small, { widthPx, pixels, left, top: left }],
      });
      const at = gif.length - 2 - random.integer(Math.max(1, Math.floor(gif.length / 2)));
      gif[at] = (gif[at] ?? 0) ^ (1 << random.integer(8));
      let facts: ReturnType<typeof factsOf>;
      try {
        facts = factsOf(gif);
      } catch {
        continue; // a sub-block that does not end
      }
      if (facts.isRewritable !== true || facts.frames < 2) continue;
      const isDecoded = await sharp(gif, { failOn: 'warning', animated: true })
        .raw()
        .toBuffer()
        .then(
          () => true,
          () => false,
        );
      verdicts[isDecoded ? 'sound' : 'damaged'] += 1;
      if (isDecoded) rewrite(gif);
      else expect(() => rewrite(gif), `seed ${seed}`).toThrow(corrupt);
    }
    expect(Math.min(verdicts.sound, verdicts.damaged)).toBeGreaterThan(10);
  });
});

describe('through the service', () => {
  const app = shareTestApp();

  const ask = (gif: Uint8Array, way: string) =>
    app.serve(gif, way.startsWith('?') ? `/attachments/{id}/1/x${way}` : `/avatars/{id}/${way}`);
  const parrot = corpusFile('emoji-small/parrot__parrot.gif');

  test.each(['x.gif', 'x.gif?size=4096&quality=lossless', '?format=gif&animated=true'])(
    'a GIF at its own size loses its metadata and not a colour, as %s',
    async (way) => {
      const { statusCode, rawPayload } = await ask(soil(parrot), way);
      expect(statusCode).toBe(200);
      expect(rawPayload.length).toBeLessThanOrEqual(parrot.length);
      expect(/secret/i.test(rawPayload.toString('latin1'))).toBe(false);
      expect(
        compareImages(await decodeImage(parrot), await decodeImage(rawPayload), 'exact'),
      ).toEqual([]);
    },
  );

  test('damaged data are a 422', async () => {
    const damaged = ofCodes([...indices(5), 7, ...indices(5), 5]);
    expect((await ask(damaged, 'x.gif')).statusCode).toBe(422);
    expect((await ask(damaged, '?format=gif')).statusCode).toBe(422);
    expect((await ask(ofCodes([...indices(10), 5]), 'x.gif')).statusCode).toBe(200);
  });

  test('a GIF that decoders do not agree on is rendered', async () => {
    const gif = drawGif({
      widthPx: 2,
      heightPx: 1,
      indexBits: 2,
      frames: [{ widthPx: 2, pixels: [0, 1] }],
    });
    const colourless = join(gif.subarray(0, 10), 0, gif.subarray(11, 13), gif.subarray(25));
    expect(factsOf(colourless).isRewritable).toBe(false);
    const { statusCode, rawPayload } = await ask(join(colourless, 'junk'), 'x.gif');
    expect(statusCode).toBe(200);
    expect((rawPayload[10] ?? 0) & 0x80).toBe(0x80);
  });
});
