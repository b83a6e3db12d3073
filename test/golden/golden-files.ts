import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';
import {
  compareImages,
  decodeImage,
  drawDifference,
  type PixelRule,
} from '../support/images/image-comparison.ts';

/** Frames drawn of a difference: it is for looking at, and an animation may have a thousand. */
const MAX_FRAMES = 12;

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

/**
 * Writes what was expected, what came instead, and a PNG of the frames that differ, one below the other; there is
 * none where the two are no images of one size.
 *
 * @param stem path of the files without `.expected.webp`, `.actual.webp` and `.difference.png`; its folder is made
 * @param extension of the first two, with the dot
 */
export async function keepFailure(
  stem: string,
  extension: string,
  { expected, actual }: { readonly expected: Uint8Array | undefined; readonly actual: Uint8Array },
): Promise<void> {
  await mkdir(path.dirname(stem), { recursive: true });
  await writeFile(`${stem}.actual${extension}`, actual);
  if (expected === undefined) return;
  await writeFile(`${stem}.expected${extension}`, expected);
  const [one, other] = await Promise.all([decodeImage(expected), decodeImage(actual)]).catch(
    () => [],
  );
  if (!one || one.widthPx !== other?.widthPx || one.heightPx !== other.heightPx) return;
  const drawings = one.frames
    .map((frame, index) => [frame, other.frames[index] ?? frame] as const)
    .filter((pair) => Buffer.compare(...pair) !== 0)
    .slice(0, MAX_FRAMES)
    .map((pair) => drawDifference(...pair, one));
  if (drawings.length === 0) return;
  const { widthPx: width, heightPx } = one;
  const raw = { width, height: heightPx * drawings.length, channels: 4 } as const;
  await sharp(Buffer.concat(drawings), { raw }).png().toFile(`${stem}.difference.png`);
}
