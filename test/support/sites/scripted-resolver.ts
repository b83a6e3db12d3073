import type { NameResolver } from '../../../src/storage/remote/resolver.ts';

/** A resolver that answers what a test says, each time with the next of its answers. */
export class ScriptedResolver implements NameResolver {
  /** Names that were asked for, in order. */
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (readonly string[])[]>();

  /** The last answer is given again and again; without one, nothing is answered. */
  set(name: string, ...answers: (readonly string[])[]): void {
    this.#answers.set(name, answers);
  }

  async resolve(name: string): Promise<readonly string[]> {
    this.asked.push(name);
    const answers = this.#answers.get(name);
    if (answers === undefined) throw new Error(`The test has no answer for ${name}.`);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    return answer ?? new Promise(() => undefined);
  }
}
