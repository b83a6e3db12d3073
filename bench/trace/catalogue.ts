import { Random, WeightedChoice } from '../harness/random.ts';
import { assumptions } from './assumptions.ts';
import { type ContentKind, contentKinds, type Shape, shapesOf } from './shapes.ts';
import { variants } from './usages.ts';

/** An original as a trace knows it. */
export interface TracedOriginal {
  readonly kind: ContentKind;
  readonly shape: Shape;
  /** Its bytes, and those of its renderings, beside the mean of its shape: 1 is the mean. */
  readonly detail: number;
  /** Seconds since the start of the trace; before it for what was there already. */
  readonly createdS: number;
  /** When it is deleted; infinite for what stays. */
  deletedS: number;
}

/** One result: an original and what is made of it. */
export interface TracedRendering {
  /** Index of the original. */
  readonly original: number;
  /** Index in `variants`. */
  readonly variant: number;
}

/** Everything that was asked for in a trace; each gets a number, in the order of its first request. */
export class Catalogue {
  readonly originals: TracedOriginal[] = [];
  readonly renderings: TracedRendering[] = [];
  readonly #known = new Map<number, number>();
  readonly #random: Random;
  readonly #shapeChoice: Readonly<Record<ContentKind, WeightedChoice>>;

  constructor(seed: number) {
    this.#random = new Random(seed);
    const choices = contentKinds.map((kind) => [
      kind,
      new WeightedChoice(shapesOf[kind].map(({ weight }) => weight)),
    ]);
    this.#shapeChoice = Object.fromEntries(choices) as Record<ContentKind, WeightedChoice>;
  }

  /** A new original, drawn from the shapes of its kind. */
  addOriginal(kind: ContentKind, createdS: number, deletedS = Number.POSITIVE_INFINITY): number {
    const shape = shapesOf[kind][this.#shapeChoice[kind].next(this.#random)];
    if (shape === undefined) throw new Error(`There is no shape of a ${kind}.`);
    const detail = Math.exp(
      assumptions.detailSpread * this.#random.normal() - assumptions.detailSpread ** 2 / 2,
    );
    return this.originals.push({ kind, shape, detail, createdS, deletedS }) - 1;
  }

  /** The number of a rendering, the same each time. */
  rendering(original: number, variant: number): number {
    const pair = original * variants.length + variant;
    const known = this.#known.get(pair);
    if (known !== undefined) return known;
    const added = this.renderings.push({ original, variant }) - 1;
    this.#known.set(pair, added);
    return added;
  }
}
