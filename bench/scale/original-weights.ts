import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import type { OriginalBytesRow } from './byte-table.ts';
import { geometricMean, groupBy } from './groups.ts';

/** Paths of all files below a folder. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

/**
 * Bytes per pixel and frame of originals by content and format; what is no image, or an AVIF, is left out.
 *
 * @param isFilm of animations: whether those in here are films; the fixtures' are drawn
 */
export function weighOriginals(files: readonly string[], isFilm: boolean): OriginalBytesRow[] {
  const weighed = files.flatMap((path) => {
    const bytes = readFileSync(path);
    const facts = readImageFacts(bytes);
    if (facts === undefined || facts.format === 'avif') return [];
    const isAnimated = facts.animation !== undefined;
    const isDrawing = isAnimated ? !isFilm : /\/(emojis|stickers)\//.test(path);
    return [
      {
        content: isDrawing ? ('drawing' as const) : ('photo' as const),
        format: facts.format,
        isAnimated,
        bytesPerPixel: bytes.length / (facts.widthPx * facts.heightPx * facts.frames),
      },
    ];
  });
  const groups = groupBy(weighed, ({ content, format, isAnimated }) =>
    [content, format, isAnimated].join(),
  );
  return groups.flatMap((group) => {
    const [first] = group;
    const mean = geometricMean(group.map(({ bytesPerPixel }) => bytesPerPixel));
    return first === undefined ? [] : [{ ...first, bytesPerPixel: Number(mean.toPrecision(3)) }];
  });
}
