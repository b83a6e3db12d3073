import { createHash } from 'node:crypto';
import { MediaError } from '../contract/errors.ts';
import type { Opened, OpenOptions, Source } from '../pipeline/ports.ts';
import { openBytes } from './origin-object.ts';

/** Originals in the bodies of internal requests, by their SHA-256. */
export class InlineOriginals implements Source {
  readonly identity = 'tag';
  readonly #originals = new Map<string, { readonly bytes: Uint8Array; users: number }>();

  add(bytes: Uint8Array): { readonly key: string; readonly free: () => void } {
    const key = createHash('sha256').update(bytes).digest('hex');
    const original = this.#originals.get(key) ?? { bytes, users: 0 };
    original.users += 1;
    this.#originals.set(key, original);
    const free = (): void => {
      original.users -= 1;
      if (original.users === 0) this.#originals.delete(key);
    };
    return { key, free };
  }

  async open(key: string, { range }: OpenOptions): Promise<Opened> {
    const bytes = this.#originals.get(key)?.bytes;
    if (bytes === undefined) throw new MediaError('UNKNOWN_MEDIA');
    return openBytes(bytes, key, range);
  }
}
