import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';
import { type DecodedImage, decodeImage, drawDifference } from './image-comparison.ts';

/** A row of the golden suite that failed. */
export interface GoldenFailure {
  readonly name: string;
  /** Request target. */
  readonly target: string;
  /** What is wrong, a sentence each. */
  readonly differences: readonly string[];
  /** Bytes of the golden; `undefined` where there is none. */
  readonly expected: Uint8Array | undefined;
  /** Body of the answer; `undefined` where it was no image. */
  readonly actual: Uint8Array | undefined;
}

/** Frames drawn per failure; the page is for looking at, and an animation may have a thousand. */
const MAX_FRAMES = 12;

const mimeTypes: Readonly<Record<string, string>> = {
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  heif: 'image/avif',
};

/**
 * Writes one HTML page with expected, actual and difference of every failure side by side; images
 * are data URIs, so that the page can be sent on by itself.
 *
 * @param file where to; its folder is made
 */
export async function writeGoldenReport(
  file: string,
  failures: readonly GoldenFailure[],
): Promise<void> {
  const sections: string[] = [];
  for (const failure of failures) sections.push(await formatFailure(failure));
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, formatPage(failures.length, sections));
}

function formatPage(count: number, sections: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Goldens: ${count} failed</title>
<style>
  body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }
  section { border-top: 1px solid #ccc; padding: 1rem 0; }
  h2 { font-size: 1.1rem; margin: 0; }
  .sides { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
  figure { margin: 0; }
  img { display: block; max-width: 30vw; max-height: 70vh; min-width: 64px; image-rendering: pixelated;
    background: repeating-conic-gradient(#ddd 0 25%, #fff 0 50%) 0 0 / 16px 16px; }
</style>
<h1>Goldens: ${count} failed</h1>
${sections.join('\n')}
</html>
`;
}

async function formatFailure(failure: GoldenFailure): Promise<string> {
  const { name, target, differences, expected, actual } = failure;
  const sides = [
    await formatSide('expected', expected),
    await formatSide('actual', actual),
    formatFigure('difference', await drawDifferences(expected, actual)),
  ];
  return `<section id="${escapeHtml(name)}">
<h2>${escapeHtml(name)}</h2>
<p><code>${escapeHtml(target)}</code></p>
<ul>${differences.map((difference) => `<li>${escapeHtml(difference)}</li>`).join('')}</ul>
<div class="sides">${sides.join('')}</div>
</section>`;
}

async function formatSide(caption: string, bytes: Uint8Array | undefined): Promise<string> {
  const metadata =
    bytes &&
    (await sharp(bytes)
      .metadata()
      .catch(() => undefined));
  const mimeType = mimeTypes[metadata?.format ?? ''];
  return formatFigure(
    caption,
    bytes && mimeType && `data:${mimeType};base64,${Buffer.from(bytes).toString('base64')}`,
  );
}

function formatFigure(caption: string, uri: string | undefined): string {
  const content = uri === undefined ? '<p>none</p>' : `<img alt="${caption}" src="${uri}">`;
  return `<figure>${content}<figcaption>${caption}</figcaption></figure>`;
}

/** The differing frames, one below the other, as a data URI; `undefined` if they cannot be laid over each other. */
async function drawDifferences(
  expected: Uint8Array | undefined,
  actual: Uint8Array | undefined,
): Promise<string | undefined> {
  if (expected === undefined || actual === undefined) return undefined;
  const decoded = await Promise.all([decodeImage(expected), decodeImage(actual)]).catch(
    () => undefined,
  );
  if (decoded === undefined || !haveSameSize(...decoded)) return undefined;
  const [one, other] = decoded;
  const drawings = one.frames.flatMap((frame, index) => {
    const counterpart = other.frames[index];
    return counterpart === undefined || Buffer.compare(frame, counterpart) === 0
      ? []
      : [drawDifference(frame, counterpart, one)];
  });
  const shown = drawings.slice(0, MAX_FRAMES);
  if (shown.length === 0) return undefined;
  const raw = { width: one.widthPx, height: one.heightPx * shown.length, channels: 4 } as const;
  const png = await sharp(Buffer.concat(shown), { raw }).png().toBuffer();
  return `data:image/png;base64,${png.toString('base64')}`;
}

function haveSameSize(one: DecodedImage, other: DecodedImage): boolean {
  return one.widthPx === other.widthPx && one.heightPx === other.heightPx;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
