import { createWeightedChoice, Random } from '../harness/random.ts';
import { assumptions } from './assumptions.ts';
import { type ContentKind, contentKinds, type Shape, shapesOf } from './shapes.ts';

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
  readonly original: number;
  /** What follows the hash or id in its URL. */
  readonly ask: string;
}

const shapeChoices = Object.fromEntries(
  contentKinds.map((kind) => [
    kind,
    createWeightedChoice(shapesOf[kind].map(({ weight }) => weight)),
  ]),
) as Readonly<Record<ContentKind, (random: Random) => number>>;

/** Everything that was asked for in a trace; each gets a number, in the order of its first request. */
export class Catalogue {
  readonly originals: TracedOriginal[] = [];
  readonly renderings: TracedRendering[] = [];
  readonly #known = new Map<string, number>();
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** A new original, drawn from the shapes of its kind. */
  addOriginal(kind: ContentKind, createdS: number, deletedS = Number.POSITIVE_INFINITY): number {
    const shape = shapesOf[kind][shapeChoices[kind](this.#random)];
    if (shape === undefined) throw new Error(`There is no shape of a ${kind}.`);
    const detail = Math.exp(
      assumptions.detailSpread * this.#random.normal() - assumptions.detailSpread ** 2 / 2,
    );
    return this.originals.push({ kind, shape, detail, createdS, deletedS }) - 1;
  }

  /** @throws Error if there is none of this number */
  original(index: number): TracedOriginal {
    const original = this.originals[index];
    if (original === undefined) throw new Error(`There is no original ${index}.`);
    return original;
  }

  /** The number of a rendering, the same each time. */
  rendering(original: number, ask: string): number {
    const key = original + ask;
    const known = this.#known.get(key) ?? this.renderings.push({ original, ask }) - 1;
    this.#known.set(key, known);
    return known;
  }
}
