import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { decodeImage, drawDifference } from '../support/images/image-comparison.ts';
import { fixturesUrl, type GoldenRow } from './golden-table.ts';

export interface ComparedRow {
  readonly row: GoldenRow;
  /** The golden, or the original if it is expected unmodified; `undefined` if the golden is missing. */
  readonly expected: Uint8Array | undefined;
  readonly actual: Uint8Array;
  /** Differences beyond the row's rule, in a sentence each. */
  readonly differences: readonly string[];
}

/** Maximum frames of a difference that are drawn: an animation may have a thousand. */
const MAX_FRAMES = 12;

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 1100px; padding: 0 1rem }
article { border-top: 1px solid #8886; padding: .75rem 0 }
article.fails { border-left: 6px solid #d33; padding-left: 1rem }
h3 { margin: 0; font-size: 1rem }
code { overflow-wrap: anywhere }
p { margin: .25rem 0 }
div { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end }
figure { margin: .5rem 0 0 }
figcaption { font-size: .8rem; opacity: .75 }
img { min-width: 96px; max-width: 240px; max-height: 240px; display: block; image-rendering: pixelated;
  outline: 1px solid #8886; background: repeating-conic-gradient(#bbb 0 25%, #eee 0 50%) 0 / 16px 16px }
`;

const directory = fileURLToPath(new URL('../../test-report', import.meta.url));
const fixtures = fileURLToPath(fixturesUrl);

/** The page of all goldens, next to a directory with its files. */
export const pageFile = path.join(directory, 'goldens.html');

export async function removePage(): Promise<void> {
  await rm(pageFile, { force: true });
  await rm(path.join(directory, 'goldens'), { recursive: true, force: true });
}

export async function writePage(compared: readonly ComparedRow[]): Promise<void> {
  const sorted = [...compared].sort(
    (one, other) =>
      Number(isFailing(other)) - Number(isFailing(one)) ||
      one.row.name.localeCompare(other.row.name),
  );
  const articles: string[] = [];
  for (const each of sorted) articles.push(await writeArticle(each));
  const failures = compared.filter(isFailing).length;
  const title = `${compared.length} goldens: ${failures === 0 ? 'all match' : `${failures} fail`}`;
  await mkdir(directory, { recursive: true });
  await writeFile(
    pageFile,
    `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style>
<h1>${title}</h1>
<p>Each row of <code>fixtures/goldens.tsv</code>: the original, the golden that was looked at once, and what the service
sends now. A difference is drawn where any pixel differs, also within the row's rule.</p>
${articles.join('\n')}
</html>
`,
  );
}

const isFailing = ({ differences }: ComparedRow): boolean => differences.length > 0;

/** Writes the result of a row, and a PNG of the frames that differ from the golden, one below the other. */
async function writeArticle({ row, expected, actual, differences }: ComparedRow): Promise<string> {
  const stem = path.join('goldens', row.name);
  await mkdir(path.dirname(path.join(directory, stem)), { recursive: true });
  const result = `${stem}.${row.format}`;
  await writeFile(path.join(directory, result), actual);
  const drawing = expected && (await drawDifferences(expected, actual));
  if (drawing) await writeFile(path.join(directory, `${stem}.difference.png`), drawing);
  const ofFixtures = (file: string) => path.relative(directory, path.join(fixtures, file));
  const golden = row.golden === undefined ? row.original : path.join('expected', row.golden);
  const figures = [
    formatFigure('original', ofFixtures(row.original)),
    formatFigure('golden', expected && ofFixtures(golden), 'missing'),
    formatFigure('result', result),
    formatFigure('difference', drawing && `${stem}.difference.png`, 'none'),
  ];
  return `<article id="${escapeHtml(row.name)}"${differences.length > 0 ? ' class="fails"' : ''}>
<h3>${escapeHtml(row.name)}</h3>
<p><code>${escapeHtml(row.target)}</code></p>
<p>${escapeHtml(row.expectations.join(', '))}</p>
${differences.map((difference) => `<p><strong>${escapeHtml(difference)}</strong></p>`).join('\n')}
<div>${figures.join('')}</div>
</article>`;
}

function formatFigure(caption: string, file: string | undefined, otherwise = ''): string {
  const url = file?.split(path.sep).map(encodeURIComponent).join('/');
  const shown =
    url === undefined || url.endsWith('.heic') // which no browser shows
      ? `<p>${url === undefined ? otherwise : `<a href="${url}">HEIC</a>`}</p>`
      : `<a href="${url}"><img src="${url}" alt="${caption}" loading="lazy"></a>`;
  return `<figure>${shown}<figcaption>${caption}</figcaption></figure>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Draws the differences; `undefined` without any, or for images of different sizes. */
async function drawDifferences(
  expected: Uint8Array,
  actual: Uint8Array,
): Promise<Buffer | undefined> {
  if (Buffer.compare(expected, actual) === 0) return undefined;
  const [one, other] = await Promise.all([decodeImage(expected), decodeImage(actual)]).catch(
    () => [],
  );
  if (!one || one.widthPx !== other?.widthPx || one.heightPx !== other.heightPx) return undefined;
  const drawings = one.frames
    .map((frame, index) => [frame, other.frames[index] ?? frame] as const)
    .filter((pair) => Buffer.compare(...pair) !== 0)
    .slice(0, MAX_FRAMES)
    .map((pair) => drawDifference(...pair, one));
  if (drawings.length === 0) return undefined;
  const { widthPx: width, heightPx } = one;
  const raw = { width, height: heightPx * drawings.length, channels: 4 } as const;
  return sharp(Buffer.concat(drawings), { raw }).png().toBuffer();
}
