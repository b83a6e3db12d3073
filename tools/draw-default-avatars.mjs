/**
 * Draws the six default avatars, `0.png` to `5.png`, into src/default-avatars. No build does this: after a change, run
 * `node tools/draw-default-avatars.mjs` and commit the result. The same release of sharp creates the same bytes.
 */

import { writeFile } from 'node:fs/promises';
import sharp from 'sharp';

const edgePx = 256;

/**
 * Background, and its darker shade for the face.
 *
 * Measured contrasts: at least 3.0 for white on every background (WCAG 2.2, 1.4.11 graphical objects), and at least 2.2
 * for every background on a dark interface (#1e1f22). Measured distances of backgrounds in OKLab: at least 0.18, and
 * at least 0.099 with protanopia, deuteranopia or tritanopia (Machado 2009).
 */
const shades = [
  { name: 'indigo', ground: '#4c6ede', face: '#1f3588' },
  { name: 'teal', ground: '#0aa3ac', face: '#05585e' },
  { name: 'green', ground: '#1f7325', face: '#124d17' },
  { name: 'amber', ground: '#d38019', face: '#7d4605' },
  { name: 'rose', ground: '#de1f60', face: '#8a0d37' },
  { name: 'plum', ground: '#8f2699', face: '#5d1365' },
];

/**
 * Draws a speech bubble with a face. Clients crop avatars to a circle of radius 128 px, so all white is within 97 px of
 * the centre. Eyes and smile are heavy, to be visible at 16 px.
 */
function avatarSvg({ ground, face }) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256" viewBox="0 0 256 256">
  <rect width="256" height="256" fill="${ground}"/>
  <path fill="#fff" d="M104 48h48a64 64 0 0 1 0 128h-33c-10 15-25 25-46 29-5 1-8-5-4-8 8-7 11-17 11-25.7a64 64 0 0 1 24-123.3z"/>
  <g fill="${face}">
    <rect x="78" y="78" width="25" height="38" rx="12.5"/>
    <rect x="153" y="78" width="25" height="38" rx="12.5"/>
  </g>
  <path fill="none" stroke="${face}" stroke-width="14" stroke-linecap="round" d="M101 137q27 24 54 0"/>
</svg>`;
}

for (const [index, shade] of shades.entries()) {
  const file = new URL(`../src/default-avatars/${index}.png`, import.meta.url);
  const png = await sharp(Buffer.from(avatarSvg(shade)))
    .resize(edgePx, edgePx)
    .flatten({ background: shade.ground })
    .png({ palette: true, colours: 64, dither: 0, effort: 10, compressionLevel: 9 })
    .toBuffer();
  await writeFile(file, png);
  process.stdout.write(`${index}.png ${shade.name} ${png.length} bytes\n`);
}
