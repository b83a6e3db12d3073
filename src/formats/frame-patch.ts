import type { Size } from './image-facts.ts';

/** Position of a frame on the canvas of an animation, and how the frame is drawn and disposed. */
export interface FramePlacement extends Size {
  readonly leftPx: number;
  readonly topPx: number;
  /** Whether the frame's pixels replace those below, alpha included, or are composited over them. */
  readonly blend: 'source' | 'over';
  /** Treatment of the frame's region before the next frame: kept, cleared to transparent black, or restored. */
  readonly dispose: 'none' | 'background' | 'previous';
}

/** A frame of an animation whose image is a file of its own. */
export interface FramePatch extends FramePlacement {
  /** A still of the size of the region. */
  readonly file: Uint8Array;
}
