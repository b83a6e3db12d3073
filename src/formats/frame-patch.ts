import type { Size } from './image-facts.ts';

/** Where a frame of an animation stands on the canvas, and how it goes there and away. */
export interface FramePlacement extends Size {
  readonly leftPx: number;
  readonly topPx: number;
  /** Whether its pixels take the place of those below, alpha too, or are laid over them. */
  readonly blend: 'source' | 'over';
  /** What becomes of its region before the next frame: nothing, transparent black, or what was there before it. */
  readonly dispose: 'none' | 'background' | 'previous';
}

/** A frame of an animation whose picture is a file of its own. */
export interface FramePatch extends FramePlacement {
  /** A still of the size of the region. */
  readonly file: Uint8Array;
}
