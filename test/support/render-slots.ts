import type { Lane, RenderBounds, Renderer, RenderSlot } from '../../src/pipeline/ports.ts';

type RenderJob = Parameters<RenderSlot['render']>[1];

/** How a job is to be run, and in which lane. */
export type RenderOptions = RenderBounds & { readonly lane: Lane };

/** Renders jobs of both lanes; how many at once is up to who calls it. */
export interface LaneRenderer {
  render(original: Uint8Array, job: RenderJob, options: RenderOptions): Promise<Uint8Array>;
}

/** Makes slots, all of them ready, of what renders. */
export function createSlots(
  renderer: LaneRenderer,
  counts: Readonly<Record<Lane, number>>,
): Renderer {
  const slotsOf = (lane: Lane): RenderSlot[] =>
    Array.from({ length: counts[lane] }, () => ({
      isReady: true,
      render: (original, job, bounds) => renderer.render(original, job, { ...bounds, lane }),
    }));
  return { slots: { light: slotsOf('light'), heavy: slotsOf('heavy') } };
}

/** Renders in the slots of a pool, in each one job after the other. */
export class QueuedRenderer implements LaneRenderer {
  readonly #pool: Renderer;
  readonly #held = new Set<RenderSlot>();
  readonly #waiting = new Set<() => void>();

  constructor(pool: Renderer) {
    this.#pool = pool;
  }

  async render(
    original: Uint8Array,
    job: RenderJob,
    { lane, ...bounds }: RenderOptions,
  ): Promise<Uint8Array> {
    const slot = await this.#take(lane, bounds.signal);
    try {
      return await slot.render(original, job, bounds);
    } finally {
      this.#held.delete(slot);
      for (const look of this.#waiting) look();
    }
  }

  #take(lane: Lane, signal: AbortSignal): Promise<RenderSlot> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const free = this.#pool.slots[lane].filter((slot) => !this.#held.has(slot));
        const slot = free.find(({ isReady }) => isReady) ?? free[0];
        if (slot === undefined && !signal.aborted) return;
        this.#waiting.delete(look);
        signal.removeEventListener('abort', look);
        if (signal.aborted || slot === undefined) reject(signal.reason);
        else {
          this.#held.add(slot);
          resolve(slot);
        }
      };
      this.#waiting.add(look);
      signal.addEventListener('abort', look, { once: true });
      look();
    });
  }
}
