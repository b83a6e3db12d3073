import { createHash } from 'node:crypto';
import { MediaError } from '../contract/errors.ts';
import type { GivenOriginals, Opened, OpenOptions } from '../pipeline/ports.ts';
import { openBytes } from './origin-object.ts';

/** Originals that came with a request, by their digests. */
export class GivenBytes implements GivenOriginals {
  readonly identity = 'tag';
  readonly #given = new Map<string, { readonly bytes: Uint8Array; users: number }>();

  hold(bytes: Uint8Array): { readonly originKey: string; readonly release: () => void } {
    const originKey = createHash('sha256').update(bytes).digest('hex');
    const given = this.#given.get(originKey) ?? { bytes, users: 0 };
    given.users += 1;
    this.#given.set(originKey, given);
    const release = (): void => {
      given.users -= 1;
      if (given.users === 0) this.#given.delete(originKey);
    };
    return { originKey, release };
  }

  async open(key: string, { range }: OpenOptions): Promise<Opened> {
    const bytes = this.#given.get(key)?.bytes;
    if (bytes === undefined) throw new MediaError('UNKNOWN_MEDIA');
    return openBytes(bytes, key, range);
  }
}
