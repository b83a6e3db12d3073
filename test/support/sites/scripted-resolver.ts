import type { NameResolver } from '../../../src/storage/remote/resolver.ts';

/** A resolver that answers what a test says, each time with the next of its answers. */
export class ScriptedResolver implements NameResolver {
  /** Names that were asked for, in order. */
  readonly asked: string[] = [];
  readonly #pending = new Set<string>();
  readonly #answers = new Map<string, (readonly string[])[]>();

  /** The last answer is given again and again. */
  set(name: string, ...answers: (readonly string[])[]): void {
    this.#answers.set(name, answers);
  }

  /** From now on, nothing is answered. */
  setPending(name: string): void {
    this.#pending.add(name);
  }

  async resolve(name: string): Promise<readonly string[]> {
    this.asked.push(name);
    if (this.#pending.has(name)) await new Promise(() => undefined);
    const answers = this.#answers.get(name) ?? [];
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === undefined) throw new Error(`The test has no answer for ${name}.`);
    return answer;
  }
}
