import type { DescribedResource, ListedOriginal } from '../explorer-data.ts';
import { create } from './element.ts';
import { formatTarget } from './media-choice.ts';

/** Files that a picture can be made of, by their names alone: others are not asked for. */
const PICTURE_NAME = /\.(?:a?png|jpe?g|webp|gif|avif|hei[cf])$/i;

/** Kinds whose pictures are seen whole, on the ground of the page. */
const CUT_OUT = new Set(['custom emoji', 'sticker']);

/** The shape of the frames of a kind, as the style sheet calls it. */
export function shapeOf(kind: string): 'broad' | 'wide' | 'square' {
  if (kind.endsWith('banner')) return 'broad';
  return kind.endsWith('splash') || kind === 'attachment' ? 'wide' : 'square';
}

/** Whether an original is a file that a picture can be made of, going by its name. */
export function isFilePicture({ values }: ListedOriginal): boolean {
  return PICTURE_NAME.test(values.filename ?? '');
}

/** Whether there is a picture of an original; of files, not always. */
export function isPicture({ name }: DescribedResource, original: ListedOriginal): boolean {
  return name !== 'attachment' || isFilePicture(original);
}

/** A small picture of an original: twice the width of its frame, for fine screens, as far as the kind has sizes. */
export function createThumbnail(
  resource: DescribedResource,
  { values }: ListedOriginal,
): HTMLImageElement {
  const { name, extensions, parameters } = resource;
  const isAttachment = name === 'attachment';
  const size = shapeOf(name) === 'square' ? '160' : '320';
  const picture = create('img', CUT_OUT.has(name) ? 'whole' : '');
  picture.loading = 'lazy';
  picture.decoding = 'async';
  picture.alt = '';
  picture.src = formatTarget({
    resource,
    values,
    extension: extensions.includes('webp') ? 'webp' : (extensions[0] ?? ''),
    parameters: isAttachment
      ? { width: size, format: 'webp', quality: 'high' }
      : parameters.length === 0
        ? {}
        : { size, quality: 'high', animated: 'false' },
  });
  return picture;
}

/** What stands for a file without a picture: its ending. */
export function createCard(filename: string): HTMLSpanElement {
  const ending = /\.([^.]+)$/.exec(filename)?.[1] ?? 'file';
  return create('span', 'card', ending.toLowerCase());
}
