import type { DescribedResource, ListedOriginal } from '../explorer-data.ts';
import { formatTarget, type MediaChoice, usualExtensionOf } from './media-choice.ts';
import type { Frame } from './originals.ts';

/** Files that a picture can be made of, by their names alone: others are not asked for. */
const PICTURE_NAME = /\.(?:a?png|jpe?g|webp|gif|avif|hei[cf])$/i;

/** Kinds whose pictures are seen whole, on the ground of the page. */
const CUT_OUT = new Set(['custom emoji', 'sticker']);

/** The shape of the frames of a kind: width by height. */
export function shapeOf(kind: string): number {
  if (kind.endsWith('banner')) return 3;
  return kind.endsWith('splash') || kind === 'attachment' ? 16 / 10 : 1;
}

/** Whether an original is a file that a picture can be made of, going by its name. */
function isFilePicture({ values }: ListedOriginal): boolean {
  return PICTURE_NAME.test(values.filename ?? '');
}

/** Whether there is a picture of an original; of files, not always. */
export function isPicture({ resource, original }: Pick<Frame, 'resource' | 'original'>): boolean {
  return resource.name !== 'attachment' || isFilePicture(original);
}

/** Whether the pictures of a kind are seen whole, on the ground of the page. */
export function isCutOut({ name }: DescribedResource): boolean {
  return CUT_OUT.has(name);
}

/**
 * Where the small picture of an original is: twice the width of its frame, for fine screens, as far as the kind has
 * sizes.
 */
export function formatThumbnail(
  resource: DescribedResource,
  original: ListedOriginal,
  isMoving: boolean,
): string {
  const { name, parameters } = resource;
  const size = shapeOf(name) > 1 ? '320' : '160';
  const animated = String(isMoving);
  return formatTarget({
    ...choiceOf(resource, original),
    parameters:
      name === 'attachment'
        ? { width: size, format: 'webp', quality: 'high', animated }
        : parameters.length === 0
          ? {}
          : { size, quality: 'high', animated },
  });
}

/**
 * What is asked for when an original is picked: large enough to look at, in the format that clients take, and moving
 * if it does.
 */
export function chooseFirst(
  resource: DescribedResource,
  original: ListedOriginal,
  isMoving = false,
): MediaChoice {
  const isSized = resource.parameters.some(
    ({ name, default: fallback }) => name === 'size' && fallback,
  );
  return {
    ...choiceOf(resource, original),
    parameters: {
      ...(isSized && { size: '512' }),
      ...(isFilePicture(original) && { width: '640' }),
      ...(isMoving && { animated: 'true' }),
    },
  };
}

/** What stands for a file without a picture: its ending. */
export function endingOfFile(filename: string): string {
  return (/\.([^.]+)$/.exec(filename)?.[1] ?? 'file').toLowerCase();
}

function choiceOf(resource: DescribedResource, { values, signature }: ListedOriginal): MediaChoice {
  const extension = usualExtensionOf(resource);
  return { resource, values, extension, parameters: {}, signature };
}
