/** Offset of a picture from the centre of its view, in pixels of the page. */
export interface Pan {
  readonly x: number;
  readonly y: number;
}

/**
 * Keeps the edges of a picture out of its view.
 *
 * @param overhang excess of the picture's size over the view's; negative if the picture is smaller
 */
export function clampPan({ x, y }: Pan, overhang: Pan): Pan {
  return { x: clamp(x, overhang.x / 2), y: clamp(y, overhang.y / 2) };
}

function clamp(value: number, most: number): number {
  return Math.max(-Math.max(0, most), Math.min(Math.max(0, most), value)) + 0;
}
