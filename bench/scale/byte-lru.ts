/** Something that holds entries of so many bytes; keys are numbers of renderings or originals. */
export interface ByteStore {
  /** Whether it holds this; if so, it was used just now. */
  touch(key: number, nowS: number): boolean;
  /** Takes this in; tells whether it did. */
  add(key: number, bytes: number, nowS: number): boolean;
  remove(key: number): void;
  /** Held now. */
  readonly usedBytes: number;
}

/** Bounded by bytes, the least recently used out first; what is larger than all of it is not kept. */
export class ByteLru implements ByteStore {
  /** Bytes by key, the least recently used first: a Map keeps the order of insertion. */
  readonly #entries = new Map<number, number>();
  readonly #maxBytes: number;
  #usedBytes = 0;

  /** @param maxBytes 0 keeps nothing, infinity everything */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  touch(key: number): boolean {
    const bytes = this.#entries.get(key);
    if (bytes === undefined) return false;
    this.#entries.delete(key);
    this.#entries.set(key, bytes);
    return true;
  }

  add(key: number, bytes: number): boolean {
    this.remove(key);
    if (bytes > this.#maxBytes) return false;
    this.#entries.set(key, bytes);
    this.#usedBytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#usedBytes <= this.#maxBytes) break;
      this.remove(oldest);
    }
    return true;
  }

  remove(key: number): void {
    this.#usedBytes -= this.#entries.get(key) ?? 0;
    this.#entries.delete(key);
  }
}

/** Bounded by age since the entry was written, as a bucket's lifecycle rule does it. */
export class AgedStore implements ByteStore {
  /** By key, the oldest first. */
  readonly #entries = new Map<number, { readonly bytes: number; readonly writtenS: number }>();
  readonly #maxAgeS: number;
  #usedBytes = 0;

  constructor(maxAgeS: number) {
    this.#maxAgeS = maxAgeS;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  touch(key: number, nowS: number): boolean {
    this.#expire(nowS);
    return this.#entries.has(key);
  }

  add(key: number, bytes: number, nowS: number): boolean {
    this.#expire(nowS);
    this.remove(key);
    this.#entries.set(key, { bytes, writtenS: nowS });
    this.#usedBytes += bytes;
    return true;
  }

  remove(key: number): void {
    this.#usedBytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }

  #expire(nowS: number): void {
    for (const [key, { writtenS }] of this.#entries) {
      if (nowS - writtenS <= this.#maxAgeS) break;
      this.remove(key);
    }
  }
}
