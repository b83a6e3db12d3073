import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { FramePatch } from '../../../src/formats/frame-patch.ts';
import { containerOf } from '../../../src/formats/read-image-facts.ts';
import {
  type ApngChunk,
  type DrawnApng,
  drawApngChunks,
  formatChunks,
} from '../../support/images/draw-apng.ts';
import { join, u32be } from '../containers.ts';
import { corpusFile, factsOf, verdictOn } from '../facts-of.ts';

const draw = () => [1, 2, 3, 4];
const drawn: DrawnApng = {
  widthPx: 8,
  heightPx: 6,
  plays: 2,
  pieces: 2,
  frames: [
    { draw, delay: [1, 3] },
    { draw, left: 2, top: 1, widthPx: 6, heightPx: 5, delay: [5, 0] },
    { draw, left: 7, top: 5, widthPx: 1, heightPx: 1, delay: [65_535, 1] },
  ],
};
const stillApart: DrawnApng = { ...drawn, still: draw };

/** The frames of an animation, as files of their own. */
async function takeApart(bytes: Uint8Array): Promise<FramePatch[]> {
  const patches: FramePatch[] = [];
  for await (const patch of containerOf(bytes)?.split?.(bytes) ?? []) patches.push(patch);
  return patches;
}

test('an APNG has the frames that its controls say, with delays as fractions', () => {
  expect(factsOf(formatChunks(drawApngChunks(drawn)))).toMatchObject({
    format: 'apng',
    widthPx: 8,
    heightPx: 6,
    frames: 3,
    animation: { delaysMs: [1_000 / 3, 50, 65_535_000], plays: 2 },
    animationFault: undefined,
    isClean: false,
  });
});

test.each([
  ['that is the default image is a still', { ...drawn, frames: [{ draw }] }, undefined],
  ['beside the default image is an animation', { ...stillApart, frames: [{ draw }] }, [100]],
])('one frame %s', (_, drawing, delaysMs) => {
  const facts = factsOf(formatChunks(drawApngChunks(drawing)));
  expect([facts.frames, facts.animation?.delaysMs]).toEqual([1, delaysMs]);
});

test.each([
  ['apng/imagers__ball.png', 20, 75, 0],
  ['apng/wuffs__animated-red-blue.apng', 4, undefined, 3],
  ['apng/wuffs__muybridge.apng', 15, undefined, 0],
])('%s has %i frames', (file, frames, delayMs, plays) => {
  const { animation } = factsOf(corpusFile(file));
  expect([animation?.delaysMs.length, animation?.plays]).toEqual([frames, plays]);
  if (delayMs !== undefined) expect(new Set(animation?.delaysMs)).toEqual(new Set([delayMs]));
});

describe('a fault of the frames is no fault of the still', () => {
  type Change = (chunks: ApngChunk[]) => readonly ApngChunk[];
  /** Changes the data of the chunk of a type, by its number among them. */
  const patch =
    (type: string, number: number, at: number, bytes: Uint8Array): Change =>
    (chunks) => {
      const found = chunks.filter((chunk) => chunk.type === type)[number];
      if (found === undefined) throw new Error(`Expected ${type} ${number} but found none`);
      const data = Buffer.from(found.data);
      data.set(bytes, at);
      return chunks.with(chunks.indexOf(found), { type, data });
    };
  const without =
    (type: string, number: number): Change =>
    (chunks) => {
      const found = chunks.filter((chunk) => chunk.type === type)[number];
      return chunks.filter((chunk) => chunk !== found);
    };
  const move =
    (type: string, number: number, to: number): Change =>
    (chunks) => {
      const found = chunks.filter((chunk) => chunk.type === type)[number];
      const others = chunks.filter((chunk) => chunk !== found);
      return found === undefined ? chunks : others.toSpliced(to, 0, found);
    };
  const add =
    (type: string, data: Uint8Array, at = -1): Change =>
    (chunks) =>
      chunks.toSpliced(at, 0, { type, data: Buffer.from(data) });

  test.each<readonly [string, Change]>([
    ['more frames said than there are', patch('acTL', 0, 0, u32be(4))],
    ['fewer', patch('acTL', 0, 0, u32be(2))],
    ['no frames said', patch('acTL', 0, 0, u32be(0))],
    ['as many as there cannot be', patch('acTL', 0, 0, u32be(0xffff_ffff))],
    ['more plays than there can be', patch('acTL', 0, 4, u32be(0x8000_0000))],
    ['an acTL too short', (chunks) => chunks.with(1, { type: 'acTL', data: u32be(3) })],
    ['a second acTL', add('acTL', join(u32be(3), u32be(2)), 2)],
    [
      'an fcTL too long',
      (chunks) =>
        chunks.map(({ type, data }) => ({ type, data: type === 'fcTL' ? join(data, 0) : data })),
    ],
    ['a frame without width', patch('fcTL', 1, 4, u32be(0))],
    ['a frame without height', patch('fcTL', 1, 8, u32be(0))],
    ['a frame over the right edge', patch('fcTL', 1, 12, u32be(3))],
    ['a frame over the lower edge', patch('fcTL', 1, 16, u32be(2))],
    ['a frame far outside', patch('fcTL', 2, 12, u32be(0xffff_ffff))],
    ['a default image that is a part', patch('fcTL', 0, 4, u32be(7))],
    ['a default image that is moved', patch('fcTL', 0, 12, u32be(1))],
    ['an unknown disposal', patch('fcTL', 1, 24, Buffer.of(3))],
    ['an unknown blend', patch('fcTL', 1, 25, Buffer.of(2))],
    ['numbers that begin with 1', patch('fcTL', 0, 0, u32be(1))],
    ['a number that is missing', patch('fdAT', 1, 0, u32be(9))],
    ['a number twice', patch('fcTL', 2, 0, u32be(3))],
    ['image data without a number', add('fdAT', Buffer.of(0, 0))],
    ['a frame that is lost', without('fcTL', 2)],
    ['data that are lost', without('fdAT', 1)],
    [
      'a last frame without data',
      (chunks) => chunks.filter(({ type }, at) => type !== 'fdAT' || at < 9),
    ],
    ['data of the default image in an fdAT', move('fcTL', 1, 7)],
    ['data before the image', move('fdAT', 0, 2)],
    ['two frames before the image', move('fcTL', 1, 3)],
  ])('%s', async (_, change) => {
    const chunks = drawApngChunks(drawn);
    const changed = formatChunks(change(chunks));
    expect(changed.equals(formatChunks(chunks))).toBe(false);
    expect(verdictOn(changed)).toMatchObject({
      format: 'apng',
      widthPx: 8,
      animation: undefined,
      animationFault: expect.stringMatching(/^APNG: /),
    });
    await expect(takeApart(changed)).rejects.toThrow(MediaError);
  });

  test.each(['acTL', 'fcTL', 'fdAT'])('a wrong checksum of %s', (type) => {
    const bytes = formatChunks(drawApngChunks(drawn));
    const at = bytes.lastIndexOf(type);
    const crc = at + 4 + bytes.readUInt32BE(at - 4);
    bytes.writeUInt8(bytes.readUInt8(crc) ^ 1, crc);
    expect(verdictOn(bytes)).toMatchObject({
      format: 'apng',
      animationFault: expect.stringContaining(`CRC of ${type}`),
    });
  });

  test('frames after the end of the file are none', async () => {
    const bytes = formatChunks(drawApngChunks(drawn));
    const more = join(bytes, bytes.subarray(bytes.indexOf('fdAT') - 4, bytes.length - 12));
    expect(factsOf(more)).toMatchObject({ frames: 3, animationFault: undefined });
    expect(await takeApart(more)).toHaveLength(3);
  });
});

describe('taken apart', () => {
  test('an APNG is PNGs of the sizes of its frames', async () => {
    const frames = await takeApart(formatChunks(drawApngChunks(stillApart)));
    const facts = frames.map(({ file }) => factsOf(file));
    expect(facts.map(({ format, widthPx, heightPx }) => [format, widthPx, heightPx])).toEqual([
      ['png', 8, 6],
      ['png', 6, 5],
      ['png', 1, 1],
    ]);
    expect(facts.every(({ isClean }) => isClean)).toBe(true);
  });

  test('what tells the meaning of samples goes with each frame, and nothing else', async () => {
    const before = [
      { type: 'gAMA', data: u32be(45_455) },
      { type: 'tEXt', data: Buffer.from('Author\0somebody') },
      { type: 'eXIf', data: Buffer.from('MM\0*') },
    ];
    const frames = await takeApart(formatChunks(drawApngChunks({ ...drawn, before })));
    for (const { file: bytes } of frames) {
      const file = Buffer.from(bytes);
      expect(file.includes('gAMA')).toBe(true);
      expect(file.includes('tEXt') || file.includes('eXIf')).toBe(false);
    }
  });

  const profile = (bytes: number): ApngChunk => ({
    type: 'iCCP',
    data: join('name\0\0', deflateSync(Buffer.alloc(bytes))),
  });
  const withProfile = (bytes: number): Buffer =>
    formatChunks(drawApngChunks({ ...drawn, before: [profile(bytes)] }));

  test('a profile that would be read for ever is too large', async () => {
    expect(await takeApart(withProfile(80 * 2 ** 20))).toHaveLength(3);
    await expect(takeApart(withProfile(90 * 2 ** 20))).rejects.toMatchObject({
      code: 'MEDIA_TOO_LARGE',
    });
  });

  test('image data may go on behind the last row, but not for ever', async () => {
    const chunks = drawApngChunks({ ...drawn, pieces: 1 });
    const fill = (bytes: number): Buffer =>
      formatChunks(
        chunks.with(5, { type: 'fdAT', data: join(u32be(2), deflateSync(Buffer.alloc(bytes))) }),
      );
    const whole = 5 * (6 * 4 + 1);
    expect(await takeApart(fill(whole))).toHaveLength(3);
    expect(await takeApart(fill(whole + 6 * 4 + 1))).toHaveLength(3);
    await expect(takeApart(fill(whole + 20 * 2 ** 20))).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
    });
  });

  test('no other format is', () => {
    expect(
      containerOf(corpusFile('gif-animated/imagers__any-disposal.gif'))?.split,
    ).toBeUndefined();
  });
});
