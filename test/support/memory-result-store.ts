import type { ResultAddress } from '../../src/contract/result-key.ts';
import type { ResultStore, StoredResult } from '../../src/pipeline/ports.ts';
import { storedPath } from './stored-path.ts';

/** Renderings in memory, without a limit; counts calls, and fails on demand. */
export class MemoryResultStore implements ResultStore {
  readonly #results = new Map<string, StoredResult>();
  /** Number of calls, including failed ones. */
  reads = 0;
  writes = 0;
  removals = 0;
  /** Error of every call except `close`, while it is set. */
  failure: Error | undefined;
  isClosed = false;

  /** Paths of the stored results, in the order of their first writes. */
  get paths(): string[] {
    return [...this.#results.keys()];
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined> {
    this.reads += 1;
    signal.throwIfAborted();
    this.#throwFailure();
    const result = this.#results.get(pathOf(address));
    if (result !== undefined) onFound(result.body.byteLength);
    return result;
  }

  async write(address: ResultAddress, { body, mimeType }: StoredResult): Promise<void> {
    this.writes += 1;
    this.#throwFailure();
    this.#results.set(pathOf(address), { body: Uint8Array.from(body), mimeType });
  }

  async remove(prefix: string): Promise<number> {
    this.removals += 1;
    this.#throwFailure();
    const segments = prefix.split('/');
    const last = segments.pop();
    if (prefix === '' || last === '..' || segments.some((segment) => /^\.{0,2}$/.test(segment))) {
      throw new Error(`"${prefix}" is not a path prefix`);
    }
    const found = this.paths.filter((path) => path.startsWith(prefix));
    for (const path of found) this.#results.delete(path);
    return found.length;
  }

  clear(): void {
    this.#results.clear();
  }

  close(): void {
    this.isClosed = true;
  }

  #throwFailure(): void {
    if (this.failure !== undefined) throw this.failure;
  }
}

function pathOf(address: ResultAddress): string {
  const path = storedPath(address);
  if (path.split('/').some((segment) => /^\.{0,2}$/.test(segment))) {
    throw new Error(`${path} is not a path`);
  }
  return path;
}
