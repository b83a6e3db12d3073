import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { containerOf } from '../../../src/formats/containers.ts';
import type { FramePatch } from '../../../src/formats/image-header.ts';
import { iteratePngChunks } from '../../../src/formats/png/png-chunks.ts';
import {
  type ApngChunk,
  type DrawnApng,
  drawApngChunks,
  formatChunks,
} from '../../support/images/draw-apng.ts';
import { join, u32be, withWrongCrc } from '../containers.ts';
import { headerOf, verdictOn } from '../header-of.ts';

const draw = () => [1, 2, 3, 4];
const drawn: DrawnApng = {
  ...{ widthPx: 8, heightPx: 6, plays: 2, pieces: 2 },
  frames: [
    { draw, delay: [1, 3] },
    { draw, left: 2, top: 1, widthPx: 6, heightPx: 5, delay: [5, 0] },
    { draw, left: 7, top: 5, widthPx: 1, heightPx: 1, delay: [65_535, 1] },
  ],
};
const chunks: readonly ApngChunk[] = drawApngChunks(drawn);
const bytes = formatChunks(chunks);
const format = (more: Partial<DrawnApng>) => formatChunks(drawApngChunks({ ...drawn, ...more }));

/** The frames of an animation as separate files. */
async function splitFrames(bytes: Uint8Array): Promise<FramePatch[]> {
  const patches: FramePatch[] = [];
  for await (const patch of containerOf(bytes)?.split?.(bytes) ?? []) patches.push(patch);
  return patches;
}

test('reads the frames of APNG control chunks, with fractional delays', () => {
  expect(headerOf(bytes)).toMatchObject({
    ...{ format: 'apng', widthPx: 8, heightPx: 6, frames: 3, isClean: false },
    animation: { delaysMs: [1_000 / 3, 50, 65_535_000], plays: 2 },
    animationError: undefined,
  });
});

test('an APNG whose only frame is its default image is a still; with another frame, it is an animation', () => {
  const [still, animated] = [{ frames: [{ draw }] }, { frames: [{ draw }], still: draw }].map(
    format,
  );
  expect(still && headerOf(still)).toMatchObject({ frames: 1, animation: undefined });
  expect(animated && headerOf(animated)).toMatchObject({
    frames: 1,
    animation: { delaysMs: [100] },
  });
});

describe('an APNG with damaged frames is read as a still PNG:', () => {
  const nth = (type: string, number: number): number => {
    const at = chunks.flatMap((chunk, index) => (chunk.type === type ? [index] : []))[number];
    return at ?? expect.fail(`no ${type} ${number}`);
  };
  /** Changes bytes of a chunk, numbered among those of its type. */
  const patch = (type: string, number: number, at: number, ...changed: readonly Uint8Array[]) => {
    const data = Buffer.from(chunks[nth(type, number)]?.data ?? []);
    data.set(join(...changed), at);
    return chunks.with(nth(type, number), { type, data });
  };
  const without = (type: string, number: number) => chunks.toSpliced(nth(type, number), 1);
  const move = (type: string, number: number, to: number) =>
    without(type, number).toSpliced(to, 0, chunks[nth(type, number)] ?? expect.fail());
  const add = (type: string, data: Buffer, at = -1) => chunks.toSpliced(at, 0, { type, data });

  test.each(
    Object.entries<readonly ApngChunk[]>({
      'an acTL that declares more frames': patch('acTL', 0, 0, u32be(4)),
      'an acTL that declares fewer frames': patch('acTL', 0, 0, u32be(2)),
      'an acTL that declares no frames': patch('acTL', 0, 0, u32be(0)),
      'an acTL with an invalid number of frames': patch('acTL', 0, 0, u32be(0xffff_ffff)),
      'an acTL with an invalid number of plays': patch('acTL', 0, 4, u32be(0x8000_0000)),
      'a short acTL': chunks.with(1, { type: 'acTL', data: u32be(3) }),
      'a second acTL': add('acTL', join(u32be(3), u32be(2)), 2),
      'a long fcTL': chunks.map(({ type, data }) => ({
        type,
        data: join(data, type === 'fcTL' ? 0 : ''),
      })),
      'a frame without width': patch('fcTL', 1, 4, u32be(0)),
      'a frame without height': patch('fcTL', 1, 8, u32be(0)),
      'a frame beyond the right edge': patch('fcTL', 1, 12, u32be(3)),
      'a frame beyond the lower edge': patch('fcTL', 1, 16, u32be(2)),
      'a frame far outside the canvas': patch('fcTL', 2, 12, u32be(0xffff_ffff)),
      'a default image smaller than the canvas': patch('fcTL', 0, 4, u32be(7)),
      'a default image with an offset': patch('fcTL', 0, 12, u32be(1)),
      'an unknown disposal': patch('fcTL', 1, 24, Buffer.of(3)),
      'an unknown blend': patch('fcTL', 1, 25, Buffer.of(2)),
      'sequence numbers from 1': patch('fcTL', 0, 0, u32be(1)),
      'a missing sequence number': patch('fdAT', 1, 0, u32be(9)),
      'a repeated sequence number': patch('fcTL', 2, 0, u32be(3)),
      'an fdAT without a sequence number': add('fdAT', Buffer.of(0, 0)),
      'a missing fcTL': without('fcTL', 2),
      'a missing fdAT': without('fdAT', 1),
      'a last frame without data': chunks.filter(({ type }, at) => type !== 'fdAT' || at < 9),
      'data of the default image in an fdAT': move('fcTL', 1, 7),
      'data before the image': move('fdAT', 0, 2),
      'two frames before the image': move('fcTL', 1, 3),
    }),
  )('%s', async (_, changed) => {
    const file = formatChunks(changed);
    expect(file.equals(bytes)).toBe(false);
    expect(verdictOn(file)).toMatchObject({
      ...{ format: 'apng', widthPx: 8, animation: undefined },
      animationError: expect.stringMatching(/^APNG: /),
    });
    await expect(splitFrames(file)).rejects.toThrow(MediaError);
  });

  test.each(['acTL', 'fcTL', 'fdAT'])('a wrong checksum of %s', (type) => {
    const animationError = expect.stringContaining(`CRC of ${type}`);
    expect(verdictOn(withWrongCrc(bytes, type))).toMatchObject({ format: 'apng', animationError });
  });

  test('ignores frames after IEND', async () => {
    const more = join(bytes, bytes.subarray(bytes.indexOf('fdAT') - 4, bytes.length - 12));
    expect(headerOf(more)).toMatchObject({ frames: 3, animationError: undefined });
    expect(await splitFrames(more)).toHaveLength(3);
  });
});

describe('an APNG split into frames', () => {
  test('has a PNG of the size of each frame', async () => {
    const frames = await splitFrames(format({ still: draw }));
    expect(frames.map(({ file }) => headerOf(file))).toMatchObject([
      { format: 'png', widthPx: 8, heightPx: 6, isClean: true },
      { format: 'png', widthPx: 6, heightPx: 5, isClean: true },
      { format: 'png', widthPx: 1, heightPx: 1, isClean: true },
    ]);
  });

  test('has the chunks that define the meaning of samples in each frame, and no others', async () => {
    const meanings = ['gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT', 'PLTE', 'tRNS'];
    const before = [...meanings, 'tEXt', 'eXIf', 'pHYs'].map((type) => ({
      type,
      data: join('MM\0*'),
    }));
    const [header = expect.fail(), ...others] = drawApngChunks({ ...drawn, before });
    const interlaced = { type: 'IHDR', data: join(header.data.subarray(0, -1), 1) };
    for (const { file } of await splitFrames(formatChunks([interlaced, ...others]))) {
      expect([...iteratePngChunks(file)].map(({ type }) => type)).toEqual([
        ...['IHDR', ...meanings, 'IDAT', 'IEND'],
      ]);
      expect(file[28]).toBe(1); // interlaced, as the original
    }
  });

  test('is rejected if its ICC profile inflates without end', async () => {
    const withProfile = (bytes: number) => {
      const data = join('name\0\0', deflateSync(Buffer.alloc(bytes)));
      return splitFrames(format({ before: [{ type: 'iCCP', data }] }));
    };
    expect(await withProfile(80 * 2 ** 20)).toHaveLength(3);
    await expect(withProfile(90 * 2 ** 20)).rejects.toMatchObject({ code: 'MEDIA_TOO_LARGE' });
  });
});
