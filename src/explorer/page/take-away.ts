import { endingOf, formatTarget, type MediaChoice } from './media-choice.ts';

/** A picture that is taken somewhere else. */
interface TakenPicture {
  readonly choice: MediaChoice;
  /** Scheme and host of its URL. */
  readonly origin: string;
  /** What came back, in pixels; `undefined` where that is not known. */
  readonly size?: { readonly width: number; readonly height: number } | undefined;
}

/** Widest that an attachment may be asked for, in pixels. */
const MAX_EDGE_PX = 4_096;

/** Parameters that ask for an edge. */
const EDGE_NAMES: readonly string[] = ['size', 'width', 'height'];

/** An `img` for screens of one and of two pixels: its size in the page is what came back for the first. */
export function formatSrcset({ choice, origin, size }: TakenPicture): string {
  const url = origin + formatTarget(choice);
  const doubled = doubleSize(choice);
  const source =
    doubled === undefined ? `${url} 1x` : `${url} 1x, ${origin}${formatTarget(doubled)} 2x`;
  const edges = size === undefined ? '' : ` width="${size.width}" height="${size.height}"`;
  return `<img src="${escapeHtml(url)}" srcset="${escapeHtml(source)}"${edges} alt="">`;
}

/** An image of Markdown, whose brackets end where they are written. */
export function formatMarkdown({ choice, origin }: TakenPicture): string {
  const url = (origin + formatTarget(choice)).replaceAll('(', '%28').replaceAll(')', '%29');
  return `![${nameOf(choice).replace(/[[\]\\]/g, '\\$&')}](${url})`;
}

/** An image of BBCode, in which a bracket would end the URL. */
export function formatBbcode({ choice, origin }: TakenPicture): string {
  const url = origin + formatTarget(choice);
  return `[img]${url.replaceAll('[', '%5B').replaceAll(']', '%5D')}[/img]`;
}

/** The name under which a picture is saved: its own, with the ending of what it was asked for as. */
export function fileNameOf(choice: MediaChoice): string {
  const name = nameOf(choice);
  const ending = endingOf(choice);
  if (ending === undefined) return name;
  const stem = choice.extension === '' ? name.replace(/\.[^.]*$/, '') : name;
  return `${stem}.${ending}`;
}

/** What stands last in its path. */
export function nameOf({ values }: Pick<MediaChoice, 'values'>): string {
  return Object.values(values).at(-1) ?? '';
}

/** The same at twice the size, or the next one above; `undefined` where it has no size, or none is larger. */
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
