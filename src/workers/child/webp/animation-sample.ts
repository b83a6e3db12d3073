import type { Size } from '../../../formats/image-facts.ts';
import type { Pixels } from '../pixels.ts';

/** Frames beyond this size are compared by every seventh byte: 7 has no common factor with the bytes of a pixel. */
const MAX_COMPARED_BYTES = 65_536;
const STEP_BYTES = 7;

/** Frames per sample, and most samples. */
const FRAMES_PER_SAMPLE = 64;
const MAX_SAMPLES = 4;

/** Changes from frame to frame of an animation. */
export interface ChangeSample {
  /** Share of each frame that differs from the previous one; 0 for the first. */
  readonly changes: readonly number[];
  /** Frames, never the first, that are spread evenly over the sum of all changes. */
  readonly samples: readonly number[];
}

/**
 * Compares each frame of an animation with the previous one, and picks some by the amount of change: a few large
 * changes may take more bytes than all others together.
 *
 * @param strip frames, at least two, one below the other
 */
export function sampleChanges({ data, widthPx, channels }: Pixels, size: Size): ChangeSample {
  const frameBytes = widthPx * size.heightPx * channels;
  const step = frameBytes > MAX_COMPARED_BYTES ? STEP_BYTES : 1;
  const changes = [0];
  for (let start = frameBytes; start < data.length; start += frameBytes) {
    let unlike = 0;
    for (let at = start; at < start + frameBytes; at += step) {
      if (data[at] !== data[at - frameBytes]) unlike += 1;
    }
    changes.push(unlike / Math.ceil(frameBytes / step));
  }
  return { changes, samples: pickSamples(changes) };
}

function pickSamples(changes: readonly number[]): readonly number[] {
  const total = changes.reduce((sum, change) => sum + change, 0);
  const count = Math.min(MAX_SAMPLES, 1 + Math.floor(changes.length / FRAMES_PER_SAMPLE));
  const samples: number[] = [];
  let passed = 0;
  for (const [index, change] of changes.entries()) {
    passed += change;
    if (change > 0 && passed >= ((samples.length + 0.5) / count) * total) samples.push(index);
  }
  return samples.length > 0 ? samples : [1];
}
