import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { compareImages, decodeImage, type PixelRule } from '../support/images/image-comparison.ts';

/** A folder of goldens; it writes where it was told to update, and only then. */
export class GoldenFiles {
  readonly #folder: string;
  readonly #isUpdating: boolean;

  constructor(folder: string, { isUpdating }: { readonly isUpdating: boolean }) {
    this.#folder = folder;
    this.#isUpdating = isUpdating;
  }

  /** Bytes of a golden; `undefined` if there is none. */
  read(golden: string): Buffer | undefined {
    const file = path.join(this.#folder, golden);
    return existsSync(file) ? readFileSync(file) : undefined;
  }

  /**
   * Compares an answer with its golden.
   *
   * @returns what differs, a sentence each; a golden that is missing is a difference too. When
   *   updating, the golden becomes the answer instead
   */
  async compare(golden: string, answer: Uint8Array, rule: PixelRule): Promise<string[]> {
    const expected = this.read(golden);
    if (expected?.equals(answer)) return []; // as on the processor that drew it
    const differences =
      expected === undefined
        ? [`there is no golden ${golden}`]
        : compareImages(await decodeImage(expected), await decodeImage(answer), rule);
    if (!this.#isUpdating || differences.length === 0) return differences;
    const file = path.join(this.#folder, golden);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, answer);
    return [];
  }

  /** Goldens that nobody names; when updating they are deleted, and there are none. */
  async findStale(named: ReadonlySet<string>): Promise<string[]> {
    const stale = readdirSync(this.#folder, { recursive: true, encoding: 'utf8' }).filter(
      (file) => path.extname(file) !== '' && !named.has(file),
    );
    if (!this.#isUpdating) return stale;
    for (const file of stale) await rm(path.join(this.#folder, file));
    return [];
  }
}
