import { EventEmitter, once } from 'node:events';
import type { Lane, RenderBounds, Renderer, RenderSlot } from '../../src/pipeline/ports.ts';

type Original = Parameters<RenderSlot['render']>[0];
type RenderJob = Parameters<RenderSlot['render']>[1];
type Reader = Parameters<RenderSlot['inspect']>[0];

export type RenderOptions = RenderBounds & { readonly lane: Lane };

/** Renderer of both lanes; the caller limits concurrency. */
export interface LaneRenderer {
  render(original: Original, job: RenderJob, options: RenderOptions): Promise<Uint8Array>;
  /** Omit for a renderer without posters. */
  readonly videoSupport?: Renderer['videoSupport'];
  /** Omit for a renderer that reads no metadata. */
  inspect?(original: Reader, options: RenderOptions): ReturnType<RenderSlot['inspect']>;
}

/** Creates slots that are always ready and delegate to a renderer; counts their jobs. */
export function createSlots(renderer: LaneRenderer, lengths: Readonly<Record<Lane, number>>) {
  const slotsOf = (lane: Lane): RenderSlot[] =>
    Array.from({ length: lengths[lane] }, () => ({
      isReady: true,
      render: async (original, job, bounds) => {
        pool.renders += 1;
        return renderer.render(original, job, { ...bounds, lane });
      },
      inspect: async (original, bounds) => {
        pool.inspections += 1;
        if (renderer.inspect === undefined) throw new Error('This renderer reads no metadata.');
        return renderer.inspect(original, { ...bounds, lane });
      },
    }));
  const pool = {
    renders: 0,
    /** Number of videos and audio files whose metadata was read. */
    inspections: 0,
    slots: { light: slotsOf('light'), heavy: slotsOf('heavy') },
    get videoSupport() {
      return renderer.videoSupport;
    },
  };
  return pool;
}

/** Queues jobs for the slots of a pool; `start` runs before the first job. */
export class QueuedRenderer implements LaneRenderer {
  readonly #pool: Renderer;
  readonly #start: () => Promise<void>;
  #started: Promise<void> | undefined;
  readonly #held = new Set<RenderSlot>();
  /** Emits `end` when a slot becomes free. */
  readonly #ends = new EventEmitter().setMaxListeners(0);

  constructor(pool: Renderer, start = async (): Promise<void> => undefined) {
    this.#pool = pool;
    this.#start = start;
  }

  get videoSupport() {
    void this.#begin();
    return this.#pool.videoSupport;
  }

  render(original: Original, job: RenderJob, options: RenderOptions): Promise<Uint8Array> {
    return this.#use(options, (slot, bounds) => slot.render(original, job, bounds));
  }

  inspect(original: Reader, options: RenderOptions): ReturnType<RenderSlot['inspect']> {
    return this.#use(options, (slot, bounds) => slot.inspect(original, bounds));
  }

  async #use<Result>(
    { lane, ...bounds }: RenderOptions,
    work: (slot: RenderSlot, bounds: RenderBounds) => Promise<Result>,
  ): Promise<Result> {
    await this.#begin();
    const slot = await this.#take(lane, bounds.signal);
    try {
      return await work(slot, bounds);
    } finally {
      this.#held.delete(slot);
      this.#ends.emit('end');
    }
  }

  #begin(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #take(lane: Lane, signal: AbortSignal): Promise<RenderSlot> {
    for (;;) {
      signal.throwIfAborted();
      const free = this.#pool.slots[lane].filter((slot) => !this.#held.has(slot));
      const slot = free.find(({ isReady }) => isReady) ?? free[0];
      if (slot === undefined) {
        await once(this.#ends, 'end', { signal }).catch(() => signal.throwIfAborted());
      } else {
        this.#held.add(slot);
        return slot;
      }
    }
  }
}
