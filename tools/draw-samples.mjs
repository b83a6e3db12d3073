/**
 * Creates the sample originals, `fixtures/originals/`, and their index with sources and licences, from
 * the table `samples/samples.tsv`:
 *
 *     node tools/draw-samples.mjs [larger corpus directory]
 *
 * A recipe copies, crops or scales a file of `fixtures/corpus`, or encodes a scene of `samples/scenes.mjs`. Samples with
 * unchanged inputs are kept (`samples/digests.json`). Some photos are only in a larger corpus, which is not in this
 * repository: without it, the committed files are kept. Fails if `fixtures/originals` has a file without a row.
 */

import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { scenes } from './samples/scenes.mjs';

/**
 * @typedef {object} Plan
 * @property {unknown[] | undefined} inputs  Everything that the bytes depend on; `undefined` if the source is missing.
 * @property {() => Promise<Buffer>} make
 * @property {string} source @property {string} licence
 * @typedef {{ delay: number[], loop: number } | undefined} Timing  Milliseconds of each frame; a loop of 0 is endless.
 */

const toolFile = (/** @type {string} */ name) =>
  fileURLToPath(new URL(`samples/${name}`, import.meta.url));
const fixturesDir = fileURLToPath(new URL('../fixtures/', import.meta.url));
const originalsDir = path.join(fixturesDir, 'originals');
const corpusDirs = [path.join(fixturesDir, 'corpus'), ...process.argv.slice(2)];

/** @type {Record<string, (image: import('sharp').Sharp, timing: Timing) => import('sharp').Sharp>} */
const encoders = {
  png: (image) => image.png({ compressionLevel: 9 }),
  'flat-png': (image) => image.png({ palette: true, colours: 128, dither: 0, effort: 10 }),
  'lossless-webp': (image) => image.webp({ lossless: true, effort: 6 }),
  gif: (image, timing) =>
    image.gif({ ...timing, colours: 64, dither: 0, effort: 10, interFrameMaxError: 0 }),
  webp: (image, timing) => image.webp({ ...timing, quality: 80, effort: 6, minSize: true }),
};

const page =
  '<!doctype html>\n<meta charset="utf-8">\n<title>Hello</title>\n<p id="verdict">No script has run.</p>\n<script>document.getElementById("verdict").textContent = "A SCRIPT HAS RUN"</script>\n';

const parseSize = (text) => /** @type {[number, number]} */ (text.split('x').map(Number));

/** Parses `12x80` or `80,80,120` into the delays of the frames. @param {string} text */
function parseDelays(text) {
  const [count = 0, delay = 0] = text.includes('x') ? parseSize(text) : [];
  return count > 0 ? Array.from({ length: count }, () => delay) : text.split(',').map(Number);
}

function drawScene(scene, size, t) {
  const draw = scenes[scene];
  if (draw === undefined) throw new Error(`Unknown scene: ${scene}`);
  return Buffer.from(draw(t, ...parseSize(size)));
}

const drawn = (plan) => ({
  ...plan,
  source: 'drawn by tools/draw-samples.mjs',
  licence: 'Apache-2.0',
});

/** Plans an encoded scene. @param {string} encoder @param {string[]} words scene, size, moment or delays, and loop */
function planScene(encoder, [scene = '', size = '', timing = '', loop = '0']) {
  const encode = encoders[encoder];
  if (encode === undefined) throw new Error(`Unknown recipe: ${encoder}`);
  const isAnimated = /[x,]/.test(timing);
  const delay = isAnimated ? parseDelays(timing) : [0];
  const documents = delay.map((_, i) =>
    drawScene(scene, size, isAnimated ? i / delay.length : Number(timing)),
  );
  return drawn({
    inputs: [...documents, `${encode}`, timing, loop],
    make: async () => {
      if (!isAnimated) return encode(sharp(documents[0]), undefined).toBuffer();
      const frames = await Promise.all(
        documents.map((document) => sharp(document).png().toBuffer()),
      );
      const image = sharp(frames, { join: { animated: true } });
      return encode(image, { delay, loop: Number(loop) }).toBuffer();
    },
  });
}

/** Reads a file of the corpus, and its row in a manifest. @param {string} file */
async function readCorpus(file) {
  const rows = await Promise.all(
    [path.join(fixturesDir, 'corpus', 'MANIFEST.tsv'), toolFile('larger-sources.tsv')].map((name) =>
      readFile(name, 'utf8'),
    ),
  );
  const row = rows
    .join('')
    .split('\n')
    .find((line) => line.startsWith(`${file}\t`));
  const [source, licence] = row?.split('\t').slice(2, 4) ?? [];
  if (!source || !licence) throw new Error(`The source of ${file} is unknown`);
  for (const dir of corpusDirs) {
    const bytes = await readFile(path.join(dir, file)).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (bytes) return { bytes, source, licence };
  }
  return { bytes: undefined, source, licence };
}

/** Plans a file that is made from one of the corpus; `how` is for the index. */
async function planDerived(file, how, make) {
  const { bytes, source, licence } = await readCorpus(file);
  return {
    inputs: bytes && [bytes, how, `${make}`],
    make: () => make(bytes ?? Buffer.alloc(0)),
    source: `${how}corpus ${file} = ${source}`,
    licence,
  };
}

function plan(recipe) {
  const [name = '', file = '', ...words] = recipe.split(' ');
  const [width, height] = parseSize(words[0] ?? '');
  switch (name) {
    case 'copy':
      return planDerived(file, '', async (bytes) => bytes);
    case 'crop': {
      const [size, position, format] = words;
      const quality = format === 'avif' ? 55 : 82;
      const options = format === 'png' ? { compressionLevel: 9 } : { quality };
      const how = `sharp: auto-oriented, cropped (${position}) to ${size}, ${format}, no metadata from `;
      return planDerived(file, how, (bytes) =>
        sharp(bytes)
          .autoOrient()
          .resize(width, height, { fit: 'cover', position })
          .toFormat(/** @type {'png'} */ (format), options)
          .toBuffer(),
      );
    }
    case 'scale': {
      const how = `sharp: scaled to ${words[0]}, not rotated, EXIF and ICC kept from `;
      return planDerived(file, how, (bytes) =>
        sharp(bytes)
          .resize(width, height)
          .keepExif()
          .keepIccProfile()
          .jpeg({ quality: 82 })
          .toBuffer(),
      );
    }
    case 'text': {
      const bytes =
        file === 'page' ? Buffer.from(page) : drawScene(file, words[0] ?? '', Number(words[1]));
      return drawn({ inputs: [bytes], make: async () => bytes });
    }
    default:
      return planScene(name, [file, ...words]);
  }
}

/** Returns the digest of inputs and output. @param {unknown[]} inputs @param {Buffer} bytes */
function digestOf(inputs, bytes) {
  const hash = createHash('sha256').update(JSON.stringify(sharp.versions));
  for (const part of [...inputs, bytes]) {
    const data = part instanceof Uint8Array ? part : String(part);
    hash.update(`\n${data.length}\n`).update(data);
  }
  return hash.digest('hex').slice(0, 16);
}

const table = await readFile(toolFile('samples.tsv'), 'utf8');
const samples = table
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'));
const digests = JSON.parse(await readFile(toolFile('digests.json'), 'utf8'));
const index = ['key\twhat it is\tsource\tlicence'];
let made = 0;
let sizeBytes = 0;
for (const [key = '', what, recipe = ''] of samples) {
  const { inputs, make, source, licence } = await plan(recipe);
  const file = path.join(originalsDir, ...key.split('/'));
  let bytes = await readFile(file).catch(() => Buffer.alloc(0));
  if (inputs !== undefined && digests[key] !== digestOf(inputs, bytes)) {
    bytes = await make();
    digests[key] = digestOf(inputs, bytes);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, bytes);
    made += 1;
  }
  sizeBytes += bytes.length;
  index.push([key, what, source, licence].join('\t'));
}
await writeFile(path.join(fixturesDir, 'originals-index.tsv'), `${index.join('\n')}\n`);
await writeFile(toolFile('digests.json'), `${JSON.stringify(digests, undefined, 2)}\n`);
await refuseStrays();
process.stdout.write(
  `${samples.length} originals, ${(sizeBytes / 1e6).toFixed(2)} MB; ${made} made\n`,
);

/** Rejects files without a row: their source is unknown. */
async function refuseStrays() {
  const named = new Set(samples.map(([key]) => key));
  if (named.size !== samples.length) throw new Error('Two samples have the same key');
  const entries = await readdir(originalsDir, { recursive: true, withFileTypes: true });
  const strays = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(originalsDir, path.join(parentPath, name)))
    .filter((key) => !named.has(key));
  if (strays.length > 0) throw new Error(`Not in the index: ${strays.join(', ')}`);
}
