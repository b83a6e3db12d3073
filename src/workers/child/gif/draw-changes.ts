import type { Area, GifImage } from '../../../formats/gif/gif-writer.ts';
import type { Size } from '../../../formats/image-header.ts';

/** Image that is not yielded yet: the next one may extend its cleared area. */
interface Pending {
  readonly area: Area;
  readonly isCleared: boolean;
  readonly frame: Uint8Array;
  /** Canvas before the image. */
  readonly canvas: Uint8Array;
}

const NOTHING: Area = { left: 0, top: 0, width: 1, height: 1 };

/**
 * Reduces whole frames to the smallest rectangles of their changes, with unchanged pixels transparent. Where pixels
 * become transparent, the previous image is cleared first (GIF89a §23, disposal), and the rest of its area is drawn
 * again.
 *
 * @param frames colour indices of whole frames
 * @param transparentIndex required for an animation
 */
export function* drawChanges(
  frames: Iterable<Uint8Array>,
  { widthPx, heightPx }: Size,
  transparentIndex: number | undefined,
): Generator<GifImage> {
  const whole: Area = { left: 0, top: 0, width: widthPx, height: heightPx };
  let pending: Pending | undefined;
  for (const frame of frames) {
    if (pending === undefined) {
      const canvas = new Uint8Array(frame.length).fill(transparentIndex ?? 0);
      pending = { area: whole, isCleared: false, frame, canvas };
      continue;
    }
    const before = pending.frame;
    const cleared = findArea(
      widthPx,
      frame,
      (at) => frame[at] === transparentIndex && before[at] !== transparentIndex,
    );
    let canvas = before;
    if (cleared !== undefined) {
      pending = { ...pending, area: unite(pending.area, cleared), isCleared: true };
      canvas = clear(before, widthPx, pending.area, transparentIndex ?? 0);
    }
    yield draw(pending, widthPx, transparentIndex);
    const area = findArea(widthPx, frame, (at) => frame[at] !== canvas[at]) ?? NOTHING;
    pending = { area, isCleared: false, frame, canvas };
  }
  if (pending !== undefined) yield draw(pending, widthPx, transparentIndex);
}

function draw(
  { area, isCleared, frame, canvas }: Pending,
  widthPx: number,
  transparentIndex: number | undefined,
): GifImage {
  const { left, top, width, height } = area;
  const indices = new Uint8Array(width * height);
  let last = -1;
  let to = 0;
  for (let y = top; y < top + height; y += 1) {
    for (let at = y * widthPx + left; at < y * widthPx + left + width; at += 1) {
      const index = frame[at];
      // A run of one colour compresses better than one with gaps.
      const isUnchanged = transparentIndex !== undefined && index === canvas[at] && index !== last;
      last = isUnchanged ? transparentIndex : index;
      indices[to] = last;
      to += 1;
    }
  }
  return { area, indices, isCleared };
}

/** Returns the smallest area with all wanted pixels. */
function findArea(
  widthPx: number,
  frame: Uint8Array,
  isWanted: (at: number) => boolean,
): Area | undefined {
  let [left, right, top, bottom] = [widthPx, -1, -1, -1];
  for (let at = 0, x = 0, y = 0; at < frame.length; at += 1) {
    if (isWanted(at)) {
      if (top < 0) top = y;
      bottom = y;
      if (x < left) left = x;
      if (x > right) right = x;
    }
    x += 1;
    if (x === widthPx) {
      x = 0;
      y += 1;
    }
  }
  if (right < 0) return undefined;
  return { left, top, width: right - left + 1, height: bottom - top + 1 };
}

function unite(one: Area, other: Area): Area {
  const left = Math.min(one.left, other.left);
  const top = Math.min(one.top, other.top);
  return {
    left,
    top,
    width: Math.max(one.left + one.width, other.left + other.width) - left,
    height: Math.max(one.top + one.height, other.top + other.height) - top,
  };
}

function clear(
  frame: Uint8Array,
  widthPx: number,
  { left, top, width, height }: Area,
  transparentIndex: number,
): Uint8Array {
  const canvas = frame.slice();
  for (let y = top; y < top + height; y += 1) {
    canvas.fill(transparentIndex, y * widthPx + left, y * widthPx + left + width);
  }
  return canvas;
}
