/** How far a picture lies from the middle of its view, in pixels of the page. */
export interface Pan {
  readonly x: number;
  readonly y: number;
}

/** Moves a picture, as far as there is more of it than its view has room for. */
export function panBy(pan: Pan, by: Pan, overhang: Pan): Pan {
  return clampPan({ x: pan.x + by.x, y: pan.y + by.y }, overhang);
}

/**
 * Keeps the edges of a picture from coming into its view.
 *
 * @param overhang by how much the picture is larger than its view; less than 0 where it is smaller
 */
export function clampPan({ x, y }: Pan, overhang: Pan): Pan {
  return { x: clamp(x, overhang.x / 2), y: clamp(y, overhang.y / 2) };
}

function clamp(value: number, most: number): number {
  return Math.max(-Math.max(0, most), Math.min(Math.max(0, most), value)) + 0;
}
