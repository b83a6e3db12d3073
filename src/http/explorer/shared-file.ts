import type { ExplorerFile } from '../../explorer/explorer-files.ts';
import type { Clock } from '../../pipeline/ports.ts';

/** For how long a file is as good as a new one. */
const KEPT_MS = 2_000;

/**
 * A file that is costly to make, and that anybody may ask for as often as he likes: made once for all who ask
 * meanwhile, and kept for two seconds. A failure is told to those who wait for it, and kept for nobody.
 */
export class SharedFile {
  readonly #make: () => Promise<ExplorerFile>;
  readonly #clock: Clock;
  #underWay: Promise<ExplorerFile> | undefined;
  #kept: { readonly file: ExplorerFile; readonly untilMs: number } | undefined;

  constructor(make: () => Promise<ExplorerFile>, clock: Clock) {
    this.#make = make;
    this.#clock = clock;
  }

  /** @throws what making it throws */
  async read(): Promise<ExplorerFile> {
    if (this.#kept !== undefined && this.#clock.nowMs() < this.#kept.untilMs) {
      return this.#kept.file;
    }
    this.#underWay ??= this.#renew().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #renew(): Promise<ExplorerFile> {
    this.#kept = undefined;
    const file = await this.#make();
    this.#kept = { file, untilMs: this.#clock.nowMs() + KEPT_MS };
    return file;
  }
}
