import { formatTarget, type MediaChoice, usualExtensionOf } from './media-choice.ts';
import { type Frame, isFilePicture } from './originals.ts';

/** Kinds whose pictures are seen whole, on the ground of the page. */
const CUT_OUT = new Set(['custom emoji', 'sticker']);

/** The shape of the frames of a kind: width by height. */
export function shapeOf(kind: string): number {
  if (kind.endsWith('banner')) return 3;
  return kind.endsWith('splash') || kind === 'attachment' ? 16 / 10 : 1;
}

/** Whether the pictures of a kind are seen whole, on the ground of the page. */
export function isCutOut({ resource }: Frame): boolean {
  return CUT_OUT.has(resource.name);
}

/**
 * Where the small picture of an original is: twice the width of its frame, for fine screens, as far as the kind has
 * sizes.
 */
export function formatThumbnail(frame: Frame, isMoving: boolean): string {
  const { name, parameters } = frame.resource;
  const size = shapeOf(name) > 1 ? '320' : '160';
  const animated = String(isMoving);
  return formatTarget({
    ...choiceOf(frame),
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
export function chooseFirst(frame: Frame, isMoving = false): MediaChoice {
  const isSized = frame.resource.parameters.some(
    ({ name, default: fallback }) => name === 'size' && fallback,
  );
  return {
    ...choiceOf(frame),
    parameters: {
      ...(isSized && { size: '512' }),
      ...(isFilePicture(frame) && { width: '640' }),
      ...(isMoving && { animated: 'true' }),
    },
  };
}

/** What stands for a file without a picture: its ending. */
export function endingOfFile(filename: string): string {
  return (/\.([^.]+)$/.exec(filename)?.[1] ?? 'file').toLowerCase();
}

function choiceOf({ resource, values, signature }: Frame): MediaChoice {
  const extension = usualExtensionOf(resource);
  return { resource, values, extension, parameters: {}, signature };
}
