import { create } from './element.ts';
import type { Exchange, Timing } from './exchange.ts';
import { formatBytes, formatExactBytes, formatMs, formatShare } from './quantity.ts';

/** Shows what came back: one fact beside the other. */
export function showResponse(
  root: HTMLElement,
  exchange: Exchange,
  originalBytes: number | undefined,
): void {
  const { status, mimeType, sizeBytes, cacheStatus, timings, totalMs, body } = exchange;
  const isError = body.kind === 'error';
  const size = body.kind === 'picture' && body.width > 0 ? `${body.width} × ${body.height}` : '–';
  root.replaceChildren(
    fact('Status', create('span', isError ? 'bad' : 'good', String(status)), statusNote(exchange)),
    fact('Type', mimeType),
    fact('Dimensions', size, size === '–' ? '' : 'pixels'),
    ...(isError
      ? [fact('Bytes', formatBytes(sizeBytes), 'of an error')]
      : [weighBytes(sizeBytes, originalBytes)]),
    fact('Cache-Status', create('code', '', cacheStatus ?? '–')),
    showTimings(timings, totalMs),
  );
}

/** Removes facts that no longer hold. */
export function clearResponse(root: HTMLElement): void {
  root.replaceChildren();
}

function statusNote({ body }: Exchange): string {
  return body.kind === 'error' ? body.code : 'OK';
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
