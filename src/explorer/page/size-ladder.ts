import { create } from './element.ts';
import { ask } from './exchange.ts';
import { formatBytes } from './labels.ts';
import { formatTarget, type MediaChoice } from './media-choice.ts';

/** Requests at a time: the service has other clients. */
const AT_A_TIME = 2;

/** Widths that are named below the chart. */
const NAMED = new Set(['16', '32', '64', '128', '256', '512', '1024', '2048', '4096']);

interface LadderParts {
  readonly root: HTMLFieldSetElement;
  readonly note: HTMLElement;
  readonly button: HTMLButtonElement;
  /** The widths of the contract, in pixels. */
  readonly widths: readonly string[];
  /** Called with the width that was picked. */
  readonly onPick: (parameter: string, width: string) => void;
}

interface Rung {
  readonly input: HTMLInputElement;
  readonly label: HTMLLabelElement;
  readonly weight: HTMLSpanElement;
}

/** What is known of a width: numbers alone, so that the bytes of its picture are freed. */
interface Measurement {
  readonly sizeBytes: number;
  /** That of the picture, which is never enlarged; in pixels. */
  readonly widthPx: number;
}

/** What all widths of a picture weigh, as a chart whose bars are the choice of a width. */
export class SizeLadder {
  readonly #parts: LadderParts;
  readonly #rungs: ReadonlyMap<string, Rung>;
  /** What was measured, by target; a request that failed is not in here, and is sent again. */
  readonly #measured = new Map<string, Measurement>();
  #choice: MediaChoice | undefined;
  #run = 0;

  constructor(parts: LadderParts) {
    this.#parts = parts;
    this.#rungs = new Map(parts.widths.map((width) => [width, createRung(width)]));
    const bars = create('div', 'bars', ...[...this.#rungs.values()].map(({ label }) => label));
    parts.root.replaceChildren(bars);
    parts.root.addEventListener('change', ({ target }) => {
      const parameter = this.#parameter;
      if (target instanceof HTMLInputElement && parameter !== undefined) {
        parts.onPick(parameter, target.value);
      }
    });
    parts.button.addEventListener('click', () => this.#measure());
  }

  /** Whether a kind has widths at all. */
  get isOfUse(): boolean {
    return this.#parameter !== undefined;
  }

  /** Shows the chart of a choice, as far as it was measured. */
  show(choice: MediaChoice): void {
    this.#run += 1;
    this.#choice = choice;
    const current = choice.parameters[this.#parameter ?? ''] ?? '';
    const width = current === '' ? this.#defaultWidth : current;
    for (const [value, { input }] of this.#rungs) input.checked = value === width;
    this.#draw();
  }

  get #parameter(): string | undefined {
    return this.#choice?.resource.parameters.find(({ name }) => name === 'size' || name === 'width')
      ?.name;
  }

  get #defaultWidth(): string | undefined {
    const { parameters = [] } = this.#choice?.resource ?? {};
    return parameters.find(({ name }) => name === this.#parameter)?.default;
  }

  #targetOf(choice: MediaChoice, width: string): string {
    const sized = { ...choice.parameters, height: '', [this.#parameter ?? '']: width };
    return formatTarget({ ...choice, parameters: sized });
  }

  async #measure(): Promise<void> {
    const choice = this.#choice;
    if (choice === undefined) return;
    this.#run += 1;
    const run = this.#run;
    const { button, widths } = this.#parts;
    button.disabled = true;
    // The small ones first: something is visible at once.
    const waiting = [...widths].reverse();
    const work = async (): Promise<void> => {
      for (let width = waiting.pop(); width !== undefined; width = waiting.pop()) {
        const target = this.#targetOf(choice, width);
        if (this.#run !== run) return;
        if (this.#measured.has(target)) continue;
        const exchange = await ask(target).catch(() => undefined);
        if (exchange === undefined) return;
        const { body, sizeBytes } = exchange;
        if (body.kind !== 'picture') continue;
        this.#measured.set(target, { sizeBytes, widthPx: body.width });
        if (this.#run === run) this.#draw();
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    button.disabled = false;
    if (this.#run === run) this.#draw();
  }

  #draw(): void {
    const choice = this.#choice;
    if (choice === undefined) return;
    const found = [...this.#rungs].map(([width, rung]) => ({
      width,
      rung,
      measurement: this.#measured.get(this.#targetOf(choice, width)),
    }));
    const measured = found.flatMap(({ measurement }) => measurement ?? []);
    const most = Math.max(1, ...measured.map(({ sizeBytes }) => sizeBytes));
    for (const { width, rung, measurement } of found) drawRung(rung, width, measurement, most);
    const { root, note, button, widths } = this.#parts;
    root.classList.toggle('is-empty', measured.length === 0);
    const isWhole = measured.length === widths.length;
    button.hidden = isWhole;
    note.textContent = isWhole
      ? describe(measured)
      : measured.length > 0
        ? `${measured.length} of ${widths.length}`
        : 'Bytes of every width that may be asked for, in this format and quality';
  }
}

function createRung(width: string): Rung {
  const input = create('input');
  input.type = 'radio';
  input.name = 'ladder';
  input.value = width;
  const weight = create('span', 'weight');
  const label = create('label', NAMED.has(width) ? 'rung named' : 'rung', input, weight);
  label.append(create('span', 'fill'), create('span', 'width', width));
  return { input, label, weight };
}

function drawRung(
  { input, label, weight }: Rung,
  width: string,
  measurement: Measurement | undefined,
  most: number,
): void {
  const { sizeBytes = 0, widthPx = Number(width) } = measurement ?? {};
  const isOriginal = widthPx < Number(width);
  const note = isOriginal ? `, ${widthPx} px wide: never enlarged` : '';
  const detail = measurement === undefined ? '' : `: ${formatBytes(sizeBytes)}${note}`;
  weight.textContent = measurement === undefined ? '' : formatBytes(sizeBytes);
  label.style.setProperty('--part', String(sizeBytes / most));
  label.classList.toggle('is-original', isOriginal);
  label.title = `${width} px${detail}`;
  input.setAttribute('aria-label', label.title);
}

/** Where the picture ends, and what the widths beyond come to. */
function describe(measured: readonly Measurement[]): string {
  const [first, last] = [measured.at(0), measured.at(-1)];
  if (first === undefined || last === undefined) return '';
  return `${formatBytes(first.sizeBytes)} to ${formatBytes(last.sizeBytes)}: the original is ${last.widthPx} px wide and never enlarged`;
}
