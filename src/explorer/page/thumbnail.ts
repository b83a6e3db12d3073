import { formatTarget, type MediaChoice, usualExtensionOf } from './media-choice.ts';
import { type Entry, isFilePicture } from './originals.ts';

const CUT_OUT = new Set(['custom emoji', 'sticker']);

export function shapeOf(kind: string): number {
  if (kind.endsWith('banner')) return 3;
  return kind.endsWith('splash') || kind === 'attachment' ? 16 / 10 : 1;
}

/** Whether pictures of a kind are shown uncropped, on the page's background. */
export function isCutOut({ resource }: Entry): boolean {
  return CUT_OUT.has(resource.name);
}

/** Formats the target of a thumbnail, twice as wide as its entry for screens of double density, if the kind has sizes. */
export function formatThumbnail(entry: Entry, isAnimated: boolean): string {
  const { name, parameters } = entry.resource;
  const size = shapeOf(name) > 1 ? '320' : '160';
  const animated = String(isAnimated);
  return formatTarget({
    ...choiceOf(entry),
    parameters:
      name === 'attachment'
        ? { width: size, format: 'webp', quality: 'high', animated }
        : parameters.length === 0
          ? {}
          : { size, quality: 'high', animated },
  });
}

/** Returns the initial choice for an original: large, in the usual format of clients, animated if the original is. */
export function chooseFirst(entry: Entry, isAnimated = false): MediaChoice {
  const isSized = entry.resource.parameters.some(
    ({ name, default: fallback }) => name === 'size' && fallback,
  );
  return {
    ...choiceOf(entry),
    parameters: {
      ...(isSized && { size: '512' }),
      ...(isFilePicture(entry) && { width: '640' }),
      ...(isAnimated && { animated: 'true' }),
    },
  };
}

export function endingOfFile(filename: string): string {
  return (/\.([^.]+)$/.exec(filename)?.[1] ?? 'file').toLowerCase();
}

function choiceOf({ resource, values, signature }: Entry): MediaChoice {
  const extension = usualExtensionOf(resource);
  return { resource, values, extension, parameters: {}, signature };
}
