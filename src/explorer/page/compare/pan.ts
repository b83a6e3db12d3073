/** How far a picture lies from the middle of its view, in pixels of the page. */
export interface Pan {
  readonly x: number;
  readonly y: number;
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
