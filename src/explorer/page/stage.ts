import { create } from './element.ts';
import type { Exchange, ResponseBody } from './exchange.ts';
import { formatExactBytes, formatShare } from './quantity.ts';

/** The part of the page that shows the picture, or the error instead. */
export class Stage {
  readonly #root: HTMLElement;
  #pictureUrl: string | undefined;
  /** Rises with all that is to be shown: a picture that is decoded after its turn is not shown. */
  #turn = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Marks that a response is awaited; what is there stays until it has come. */
  wait(): void {
    this.#turn += 1;
    this.#root.setAttribute('aria-busy', 'true');
  }

  /** Shows what came back, unless there is something newer once its picture is decoded. */
  async show(exchange: Exchange): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    const { body } = exchange;
    if (body.kind !== 'picture') {
      this.#replace(body.kind === 'error' ? describeError(exchange, body) : describeFile(exchange));
      return;
    }
    const picture = create('img');
    picture.alt = `${body.width} × ${body.height} pixels`;
    const url = URL.createObjectURL(body.blob);
    picture.src = url;
    await picture.decode().catch(() => undefined);
    if (turn !== this.#turn) {
      URL.revokeObjectURL(url);
      return;
    }
    this.#replace(picture, url);
    this.#noteScale();
  }

  /** Shows that nothing came back. */
  showFailure(message: string): void {
    this.#turn += 1;
    this.#replace(
      create('div', 'fault', create('p', 'code', 'No answer'), create('p', '', message)),
    );
  }

  #replace(content: HTMLElement, pictureUrl?: string): void {
    this.#root.removeAttribute('aria-busy');
    this.#root.replaceChildren(content);
    if (this.#pictureUrl !== undefined) URL.revokeObjectURL(this.#pictureUrl);
    this.#pictureUrl = pictureUrl;
  }

  /** Notes the scale of a picture that is not shown pixel for pixel: its sharpness cannot be judged. */
  #noteScale(): void {
    const picture = this.#root.querySelector('img');
    if (picture === null || picture.clientWidth >= picture.naturalWidth) return;
    const share = formatShare(picture.clientWidth, picture.naturalWidth);
    this.#root.append(create('figcaption', '', `seen at ${share}`));
  }
}

function describeError(
  { status }: Exchange,
  { code, message, errors }: Extract<ResponseBody, { kind: 'error' }>,
): HTMLElement {
  const list = create('ul');
  for (const fault of errors) {
    list.append(create('li', '', create('code', '', fault.path), ` ${fault.message}`));
  }
  const fault = create('div', 'fault');
  fault.append(create('p', 'status', String(status)), create('p', 'code', code));
  fault.append(create('p', '', message));
  if (errors.length > 0) fault.append(list);
  return fault;
}

function describeFile({ target, mimeType, sizeBytes }: Exchange): HTMLElement {
  const link = create('a', '', 'Open it');
  link.href = target;
  link.target = '_blank';
  link.rel = 'noopener';
  const what = `${formatExactBytes(sizeBytes)}, not shown here.`;
  return create('div', 'file', create('p', 'code', mimeType), create('p', '', what), link);
}
