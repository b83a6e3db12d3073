import { create } from './element.ts';
import type { Exchange } from './exchange.ts';
import { formatExactBytes, formatShare } from './quantity.ts';

/** Where the picture is seen, or the error instead. */
export class Stage {
  readonly #root: HTMLElement;
  #pictureUrl: string | undefined;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Says that an answer is awaited; what is there stays until it has come. */
  wait(): void {
    this.#root.setAttribute('aria-busy', 'true');
  }

  /** Shows what came back. */
  async show(exchange: Exchange): Promise<void> {
    const content = await this.#createContent(exchange);
    this.#root.removeAttribute('aria-busy');
    this.#root.replaceChildren(...content);
    this.#tellScale();
  }

  /** Shows that nothing came back. */
  showFailure(message: string): void {
    this.#root.removeAttribute('aria-busy');
    this.#root.replaceChildren(
      create('div', 'fault', create('p', 'code', 'No answer'), create('p', '', message)),
    );
  }

  /** What is not seen pixel for pixel is no judge of sharpness. */
  #tellScale(): void {
    const picture = this.#root.querySelector('img');
    if (picture === null || picture.clientWidth >= picture.naturalWidth) return;
    const share = formatShare(picture.clientWidth, picture.naturalWidth);
    this.#root.append(create('figcaption', '', `seen at ${share}`));
  }

  async #createContent({ target, mimeType, sizeBytes, body, status }: Exchange): Promise<Node[]> {
    if (body.kind === 'error') {
      const list = create('ul');
      for (const { path, message } of body.errors) {
        list.append(create('li', '', create('code', '', path), ` ${message}`));
      }
      const fault = create('div', 'fault');
      fault.append(create('p', 'status', String(status)), create('p', 'code', body.code));
      fault.append(create('p', '', body.message));
      if (body.errors.length > 0) fault.append(list);
      return [fault];
    }
    if (body.kind === 'file') {
      const link = create('a', '', 'Open it');
      link.href = target;
      link.target = '_blank';
      link.rel = 'noopener';
      const what = `${formatExactBytes(sizeBytes)}, not shown here.`;
      return [create('div', 'file', create('p', 'code', mimeType), create('p', '', what), link)];
    }
    const picture = create('img');
    picture.alt = `${body.width} × ${body.height} pixels`;
    const url = URL.createObjectURL(body.blob);
    picture.src = url;
    await picture.decode().catch(() => undefined);
    if (this.#pictureUrl !== undefined) URL.revokeObjectURL(this.#pictureUrl);
    this.#pictureUrl = url;
    return [picture];
  }
}
