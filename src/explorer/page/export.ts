import { endingOf, formatTarget, type MediaChoice } from './media-choice.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

interface ShownPicture {
  readonly choice: MediaChoice;
  readonly origin: string;
  /** In pixels; 0 if the browser cannot decode the picture. */
  readonly size: Size;
  /** Size of the original in pixels, if known, which limits that of the result. */
  readonly original?: Size | undefined;
}

const EDGE_NAMES: readonly string[] = ['size', 'width', 'height'];

/** Formats an `img` for screens of single and double density. */
export function formatImage({ choice, origin, size, original }: ShownPicture): string {
  const url = origin + formatTarget(choice);
  const enlarged = enlarge(choice, size, original);
  const source =
    enlarged && `${url} 1x, ${origin}${formatTarget(enlarged.choice)} ${enlarged.density}x`;
  const attributes = [
    `src="${escapeHtml(url)}"`,
    source && `srcset="${escapeHtml(source)}"`,
    size.width > 0 && `width="${size.width}" height="${size.height}"`,
    'alt=""',
  ];
  return `<img ${attributes.filter(Boolean).join(' ')}>`;
}

/** Returns a file name for a picture, with the extension of the requested format. */
export function fileNameOf(choice: MediaChoice): string {
  const name = nameOf(choice);
  const ending = endingOf(choice);
  if (ending === undefined) return name;
  const stem = choice.extension === '' ? name.replace(/\.[^.]*$/, '') : name;
  return `${stem}.${ending}`;
}

export function nameOf({ values }: Pick<MediaChoice, 'values'>): string {
  return Object.values(values).at(-1) ?? '';
}

/**
 * Returns the choice at twice its size, or up to the size of the original, and the ratio of the widths. Returns
 * `undefined` if no larger size exists.
 */
function enlarge(
  choice: MediaChoice,
  size: Size,
  original: Size | undefined,
): { readonly choice: MediaChoice; readonly density: number } | undefined {
  const possible =
    original === undefined || size.width === 0
      ? 2
      : Math.min(2, original.width / size.width, original.height / size.height);
  if (possible <= 1) return undefined;
  const density = Math.round(possible * 100) / 100;
  const edges: Record<string, string> = {};
  for (const { name, form, default: fallback } of choice.resource.parameters) {
    const value = choice.parameters[name] || fallback;
    if (value === undefined || !EDGE_NAMES.includes(name)) continue;
    const wanted = Math.round(possible * Number(value));
    const next =
      form.kind === 'choice'
        ? form.values.find((word) => Number(word) >= wanted)
        : wanted <= form.max && String(wanted);
    if (!next) return undefined;
    edges[name] = next;
  }
  if (Object.keys(edges).length === 0) return undefined;
  return { choice: { ...choice, parameters: { ...choice.parameters, ...edges } }, density };
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
