import { setTimeout as sleep } from 'node:timers/promises';
import type { AppParts } from '../../src/app.ts';

type SharedObjects = NonNullable<AppParts['objects']>;

/** Shared objects in memory; fails on demand. */
export class MemoryObjects implements SharedObjects {
  readonly #objects = new Map<string, { readonly bytes: Uint8Array; readonly tag: string }>();
  #versions = 0;
  /** Error of every call, while it is set. */
  failure: Error | undefined;
  /** Duration of each write, in real milliseconds. */
  writeMs = 0;

  get names(): string[] {
    return [...this.#objects.keys()];
  }

  textOf(name: string): string {
    return Buffer.from(this.#objects.get(name)?.bytes ?? []).toString();
  }

  async read(name: string) {
    this.#throwFailure();
    return this.#objects.get(name);
  }

  async findTag(name: string): Promise<string | undefined> {
    this.#throwFailure();
    return this.#objects.get(name)?.tag;
  }

  write: SharedObjects['write'] = async (name, bytes, condition) => {
    this.#throwFailure();
    if (this.writeMs > 0) await sleep(this.writeMs);
    const found = this.#objects.get(name)?.tag;
    if (found !== (condition === 'absent' ? undefined : condition.tag)) return undefined;
    this.#versions += 1;
    const tag = String(this.#versions);
    this.#objects.set(name, { bytes: Uint8Array.from(bytes), tag });
    return tag;
  };

  async list(prefix: string): Promise<readonly string[]> {
    this.#throwFailure();
    return this.names.filter((name) => name !== '' && name.startsWith(prefix));
  }

  async remove(name: string): Promise<void> {
    this.#throwFailure();
    this.#objects.delete(name);
  }

  #throwFailure(): void {
    if (this.failure !== undefined) throw this.failure;
  }
}
