import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gifLabel, walkGifBlocks } from '../../../src/formats/gif/gif-blocks.ts';
import { gifControl, gifImage, gifLoop, gifScreen, join } from '../containers.ts';

type Told =
  | { kind: 'extension'; label: number; start: number; end: number }
  | { kind: 'image'; start: number; data: number };

function walk(gif: Uint8Array) {
  const told: Told[] = [];
  const end = walkGifBlocks(gif, {
    onExtension: (label, start, end) => told.push({ kind: 'extension', label, start, end }),
    onImage: (start, data) => told.push({ kind: 'image', start, data }),
  });
  return { told, end };
}

const screen = gifScreen(4, 3);
const image = gifImage(0, 0, 4, 3);
const first = screen.length;

test('tells of each block in its order', () => {
  const [loop, control] = [gifLoop(0), gifControl(5)];
  const comment = join(0x21, 0xfe, 2, 'ab', 1, 'c', 0);
  const paletted = join(image.subarray(0, 9), 0x81, Buffer.alloc(12), image.subarray(10));
  const blocks = [loop, control, image, comment, paletted, join(0x3b)];
  const gif = join(screen, ...blocks);
  const starts = blocks.map((_, index) => join(screen, ...blocks.slice(0, index)).length);
  const [atLoop = 0, atControl = 0, atImage = 0, atComment = 0, atPaletted = 0, atTrailer] = starts;
  expect(walk(gif)).toEqual({
    told: [
      { kind: 'extension', label: gifLabel.application, start: atLoop, end: atControl },
      { kind: 'extension', label: gifLabel.graphicControl, start: atControl, end: atImage },
      { kind: 'image', start: atImage, data: atImage + 10 },
      { kind: 'extension', label: gifLabel.comment, start: atComment, end: atPaletted },
      { kind: 'image', start: atPaletted, data: atPaletted + 10 + 12 },
    ],
    end: { kind: 'trailer', position: atTrailer },
  });
});

test('skips the first sub-block of all but a comment whatever its size', () => {
  // To a reader of sub-blocks alone the first would end at its 0, and the rest would be junk.
  const empty = join(0x21, 0xff, 0, 2, 'ab', 0);
  expect(walk(join(screen, empty, 0x3b)).told).toEqual([
    { kind: 'extension', label: 0xff, start: first, end: first + empty.length },
  ]);
  expect(walk(join(screen, 0x21, 0xfe, 0, 0x3b)).told).toEqual([
    { kind: 'extension', label: 0xfe, start: first, end: first + 3 },
  ]);
});

// Where a walk ends, and as what, gif-header.test.ts has.
test('tells of nothing that is not wholly in the file, whatever the bytes', () => {
  const piece = fc.oneof(
    fc.constantFrom(image, gifLoop(3), gifControl(9), join(0x21, 0xfe, 1, 'x', 0), join(0x3b)),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(0x21, 0x2c, 0xf9, 0xff).map((byte) => Buffer.of(byte)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(200), (pieces, cut) => {
      const whole = join(screen, ...pieces);
      const gif = whole.subarray(0, Math.max(0, whole.length - (cut > 100 ? 0 : cut)));
      const { told, end } = walk(gif);
      let position = first;
      for (const block of told) {
        expect(block.start).toBeGreaterThanOrEqual(position);
        if (block.kind === 'extension') {
          expect(gif[block.start]).toBe(0x21);
          expect(gif[block.end - 1]).toBe(0); // of its last sub-block
          position = block.end;
        } else {
          expect(gif[block.start]).toBe(0x2c);
          expect(gif[block.data]).toBeLessThan(12);
          position = block.data + 2;
        }
        expect(position).toBeLessThanOrEqual(gif.length);
      }
      expect(end.kind === 'truncated').toBe(end.position > gif.length);
    }),
    { numRuns: 2_000 },
  );
});
