import type { ParameterForm } from '../../contract/media-query.ts';
import { create } from './element.ts';
import { ask, type Exchange } from './exchange.ts';
import { formatBytes, formatShare } from './labels.ts';
import { formatTarget, type MediaChoice } from './media-choice.ts';

/** Changes come in groups; after this time without one the pictures are asked for, in milliseconds. */
const CALM_MS = 300;

/** One of the two pictures, with the choice of its quality. */
class Side {
  readonly select = create('select');
  readonly picture = create('img');
  readonly note = create('span', 'note');
  readonly #first: string;
  #url: string | undefined;

  /** @param first the quality that it begins with */
  constructor(name: string, first: string) {
    this.#first = first;
    this.select.setAttribute('aria-label', `Quality on the ${name}`);
    this.picture.className = name;
    this.picture.alt = `The ${name} picture of the comparison`;
  }

  offer(form: ParameterForm | undefined): void {
    const values = form?.kind === 'choice' ? form.values : [];
    const chosen = this.select.value === '' ? this.#first : this.select.value;
    this.select.replaceChildren(...values.map((value) => new Option(value, value)));
    if (values.includes(chosen)) this.select.value = chosen;
  }

  show({ body }: Exchange): void {
    if (body.kind !== 'picture') return;
    if (this.#url !== undefined) URL.revokeObjectURL(this.#url);
    this.#url = URL.createObjectURL(body.blob);
    this.picture.src = this.#url;
  }
}

/** The same picture in two qualities, one over the other, and a slider between them. */
export class QualitySlider {
  readonly #left = new Side('left', 'lossless');
  readonly #right = new Side('right', 'low');
  readonly #range = create('input');
  readonly #pair: HTMLElement;
  readonly #view: HTMLElement;
  readonly #seen: IntersectionObserver;
  #choice: MediaChoice | undefined;
  #shown = '';
  #timer = 0;
  #isSeen = false;

  constructor(root: HTMLElement) {
    this.#range.type = 'range';
    this.#range.min = '0';
    this.#range.max = '100';
    this.#range.value = '50';
    this.#range.setAttribute('aria-label', 'How much of the left picture is seen, in percent');
    this.#pair = create('div', 'pair', this.#left.picture, this.#right.picture);
    this.#pair.append(create('span', 'divider'), this.#range);
    this.#view = create('div', 'view', this.#pair);
    this.#view.hidden = true;
    const left = create('div', 'side', this.#left.select, this.#left.note);
    const right = create('div', 'side', this.#right.note, this.#right.select);
    root.replaceChildren(create('div', 'sides', left, right), this.#view);
    root.addEventListener('change', () => this.#load());
    this.#range.addEventListener('input', () => this.#split());
    this.#split();
    // Two more renders for each change: not before the comparison is on the screen.
    this.#seen = new IntersectionObserver((entries) => {
      this.#isSeen = entries.some(({ isIntersecting }) => isIntersecting);
      this.#plan();
    });
    this.#seen.observe(root);
  }

  /** Compares the qualities of a choice as soon as they are seen. */
  show(choice: MediaChoice): void {
    this.#choice = choice;
    const form = choice.resource.parameters.find(({ name }) => name === 'quality')?.form;
    this.#left.offer(form);
    this.#right.offer(form);
    this.#plan();
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#isSeen) this.#timer = window.setTimeout(() => this.#load(), CALM_MS);
  }

  #split(): void {
    this.#pair.style.setProperty('--split', `${this.#range.value}%`);
  }

  async #load(): Promise<void> {
    const choice = this.#choice;
    if (choice === undefined) return;
    const targets = [this.#left, this.#right].map(({ select }) =>
      formatTarget({ ...choice, parameters: { ...choice.parameters, quality: select.value } }),
    );
    const [left = '', right = ''] = targets;
    const shown = targets.join(' ');
    if (shown === this.#shown) return;
    this.#shown = shown;
    try {
      const [first, second] = await Promise.all([ask(left), ask(right)]);
      if (this.#shown !== shown) return;
      const isWhole = first.body.kind === 'picture' && second.body.kind === 'picture';
      this.#view.hidden = !isWhole;
      this.#left.show(first);
      this.#right.show(second);
      this.#left.note.textContent = isWhole ? formatBytes(first.sizeBytes) : '';
      this.#right.note.textContent = isWhole
        ? `${formatBytes(second.sizeBytes)}, ${formatShare(second.sizeBytes, first.sizeBytes)} of it`
        : 'There are no two pictures to compare';
    } catch {
      this.#shown = '';
    }
  }
}
