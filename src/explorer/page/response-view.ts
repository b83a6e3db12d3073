import { create } from './element.ts';
import type { Exchange, ResponseBody, Timing } from './exchange.ts';
import { formatBytes, formatExactBytes, formatMs, formatShare } from './labels.ts';

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
      create('div', 'fault', create('p', 'code', 'No response'), create('p', '', message)),
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

/** Shows what came back: one fact beside the other. */
export function showFacts(
  root: HTMLElement,
  { status, mimeType, sizeBytes, cacheStatus, timings, totalMs, body }: Exchange,
  originalBytes: number | undefined,
): void {
  const isError = body.kind === 'error';
  const size = body.kind === 'picture' && body.width > 0 ? `${body.width} × ${body.height}` : '–';
  root.replaceChildren(
    fact(
      'Status',
      create('span', isError ? 'bad' : 'good', String(status)),
      isError ? body.code : 'OK',
    ),
    fact('Type', mimeType),
    fact('Dimensions', size, size === '–' ? '' : 'pixels'),
    isError
      ? fact('Bytes', formatBytes(sizeBytes), 'of an error')
      : weighBytes(sizeBytes, originalBytes),
    fact('Cache-Status', create('code', '', cacheStatus ?? '–')),
    showTimings(timings, totalMs),
  );
}

function weighBytes(sizeBytes: number, originalBytes: number | undefined): HTMLElement {
  if (originalBytes === undefined)
    return fact('Bytes', formatBytes(sizeBytes), formatExactBytes(sizeBytes));
  const note = `${formatShare(sizeBytes, originalBytes)} of the original`;
  const bar = create('span', 'bar', create('span', 'part'));
  bar.style.setProperty('--part', String(Math.min(1, sizeBytes / Math.max(1, originalBytes))));
  const element = fact('Bytes', formatBytes(sizeBytes), note);
  element.querySelector('dd')?.append(bar);
  element.title = formatExactBytes(sizeBytes);
  return element;
}

/** The stages that the request passed through, as parts of the time that it took here. */
function showTimings(timings: readonly Timing[], totalMs: number): HTMLElement {
  const bar = create('span', 'bar timings');
  for (const { name, durationMs } of timings) {
    const part = create('span', `part ${name}`);
    part.style.setProperty('--part', String(Math.min(1, durationMs / Math.max(1, totalMs))));
    bar.append(part);
  }
  const words = timings.map(({ name, durationMs }) =>
    create('span', `timing ${name}`, `${name} ${formatMs(durationMs)}`),
  );
  const element = fact('Server-Timing', create('span', 'timings-list', ...words));
  const seen = create('span', 'note', `${formatMs(totalMs)} round trip`);
  element.querySelector('dd')?.append(bar, seen);
  return element;
}

function fact(name: string, value: Node | string, note = ''): HTMLElement {
  const content = create('dd', '', create('span', 'value', value));
  if (note !== '') content.append(create('span', 'note', note));
  return create('div', name.toLowerCase(), create('dt', '', name), content);
}
