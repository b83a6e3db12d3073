import { create } from './element.ts';

/** How long a button says that it has copied. */
const CONFIRMATION_MS = 1_500;

/** A line of text that is there to be copied. */
export class CopyLine {
  readonly #code = create('code');
  readonly #button = create('button', '', 'Copy');
  #text = '';

  /** @param label what it is: `URL` */
  constructor(root: HTMLElement, label: string) {
    this.#button.type = 'button';
    this.#button.setAttribute('aria-label', `Copy the ${label}`);
    this.#button.addEventListener('click', () => this.#copy());
    root.replaceChildren(create('span', 'soft', label), this.#code, this.#button);
  }

  /** @param parts of the text, with a class each where it is of another tone */
  show(parts: readonly { readonly text: string; readonly tone?: string }[]): void {
    this.#text = parts.map(({ text }) => text).join('');
    this.#code.replaceChildren(...parts.map(({ text, tone }) => create('span', tone, text)));
  }

  async #copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#text);
      this.#button.textContent = 'Copied';
    } catch {
      // Browsers let pages of this machine and of https alone write to the clipboard.
      getSelection()?.selectAllChildren(this.#code);
      this.#button.textContent = 'Selected';
    }
    setTimeout(() => {
      this.#button.textContent = 'Copy';
    }, CONFIRMATION_MS);
  }
}
