import { endingOf, formatTarget, type MediaChoice } from './media-choice.ts';

interface TakenPicture {
  readonly choice: MediaChoice;
  /** Scheme and host of its URL. */
  readonly origin: string;
  /** Size of the result in pixels; `undefined` if unknown. */
  readonly size?: { readonly width: number; readonly height: number } | undefined;
}

/** Largest edge that an attachment may be requested with, in pixels. */
const MAX_EDGE_PX = 4_096;

const EDGE_NAMES: readonly string[] = ['size', 'width', 'height'];

/** Formats an `img` for screens of single and double density, with the size of the former. */
export function formatSrcset({ choice, origin, size }: TakenPicture): string {
  const url = origin + formatTarget(choice);
  const doubled = doubleSize(choice);
  const source =
    doubled === undefined ? `${url} 1x` : `${url} 1x, ${origin}${formatTarget(doubled)} 2x`;
  const edges = size === undefined ? '' : ` width="${size.width}" height="${size.height}"`;
  return `<img src="${escapeHtml(url)}" srcset="${escapeHtml(source)}"${edges} alt="">`;
}

/** Returns a file name for a picture: its own, with the extension of the requested format. */
export function fileNameOf(choice: MediaChoice): string {
  const name = nameOf(choice);
  const ending = endingOf(choice);
  if (ending === undefined) return name;
  const stem = choice.extension === '' ? name.replace(/\.[^.]*$/, '') : name;
  return `${stem}.${ending}`;
}

/** Returns the last value of a choice's path. */
export function nameOf({ values }: Pick<MediaChoice, 'values'>): string {
  return Object.values(values).at(-1) ?? '';
}

/** Returns the choice at twice the size, or the next one above; `undefined` without a size, or a larger one. */
function doubleSize(choice: MediaChoice): MediaChoice | undefined {
  const edges: Record<string, string> = {};
  for (const { name, form, default: fallback } of choice.resource.parameters) {
    const value = choice.parameters[name] || fallback;
    if (value === undefined || !EDGE_NAMES.includes(name)) continue;
    const wanted = 2 * Number(value);
    const offered = form.kind === 'choice' ? form.values : [String(wanted)];
    const next = offered.find((word) => Number(word) >= wanted && Number(word) <= MAX_EDGE_PX);
    if (next === undefined) return undefined;
    edges[name] = next;
  }
  if (Object.keys(edges).length === 0) return undefined;
  return { ...choice, parameters: { ...choice.parameters, ...edges } };
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
