/**
 * Makes the sample originals that a fresh checkout serves: `fixtures/originals/` laid out by origin
 * key, and `fixtures/originals-index.tsv`, which says of each key what it is, where it comes from
 * and under which licence.
 *
 *     node tools/draw-samples.mjs [larger corpus folder]
 *
 * Three sources: drawings of this file, files of `fixtures/corpus` copied byte for byte, and photos
 * cropped or scaled from a corpus file. A few photos come from a larger corpus that is not in this
 * repository; without its folder as an argument the committed result is kept. The same sharp
 * release gives the same bytes. Fails when `fixtures/originals` holds a file that no row names.
 */

import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';

/**
 * @typedef {{ bytes: Buffer | undefined, source: string, licence: string }} Made
 *   `bytes` is undefined if the source is missing; the committed file is kept.
 * @typedef {{ key: string, what: string, make: () => Promise<Made> }} Sample
 * @typedef {(t: number) => string} Scene  SVG document at the moment t of one turn, 0 ≤ t < 1.
 * @typedef {(image: import('sharp').Sharp) => import('sharp').Sharp} Recipe
 */

const fixturesDir = fileURLToPath(new URL('../fixtures/', import.meta.url));
const originalsDir = path.join(fixturesDir, 'originals');
const corpusDirs = [path.join(fixturesDir, 'corpus'), ...process.argv.slice(2)];

const user = '1471234567890123456';
const guild = '1472222222222222223';
const emoji = '1473333333333333334';
const sticker = '1474444444444444445';
const channel = '1475555555555555556';
const attachment = '1476666666666666667';
const stillHash = '0123456789abcdef0123456789abcdef';
const animatedHash = 'fedcba9876543210fedcba9876543210';

// ---- Drawing: a few words of geometry --------------------------------------------------------

const turn = 2 * Math.PI;
/** @param {number} n */
const round = (n) => Math.round(n * 100) / 100;

/** @param {number} w @param {number} h @param {string} body @param {string} [viewBox] */
const svg = (w, h, body, viewBox = `0 0 ${w} ${h}`) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="${viewBox}">${body}</svg>`;

/** A Lehmer generator, so that confetti and stars lie the same way at every run. @param {number} seed */
function scatter(seed) {
  let state = seed;
  return (/** @type {number} */ low, /** @type {number} */ high) => {
    state = (state * 48271) % 2147483647;
    return round(low + (state / 2147483647) * (high - low));
  };
}

/**
 * Everything below one sine line, which wraps round after one turn.
 * @param {{ w: number, h: number, y: number, swell: number, waves: number, shift: number, fill: string }} hill
 */
function hill({ w, h, y, swell, waves, shift, fill }) {
  const points = Array.from({ length: 49 }, (_, i) => {
    const x = i / 48;
    return `${round(x * w)} ${round(y + swell * Math.sin(turn * (waves * x + shift)))}`;
  });
  return `<path fill="${fill}" d="M${points.join('L')}V${h}H0Z"/>`;
}

/** @param {number} cx @param {number} cy @param {number} outer @param {number} inner */
function starPath(cx, cy, outer, inner) {
  const points = Array.from({ length: 10 }, (_, i) => {
    const radius = i % 2 === 0 ? outer : inner;
    const angle = (turn * i) / 10 - turn / 4;
    return `${round(cx + radius * Math.cos(angle))} ${round(cy + radius * Math.sin(angle))}`;
  });
  return `M${points.join('L')}Z`;
}

const heartPath = 'M64 110C20 78 10 58 10 42a27 27 0 0 1 54-6 27 27 0 0 1 54 6c0 16-10 36-54 68z';

// ---- Emojis, on a canvas of 128 x 128 --------------------------------------------------------

const ink = '#5b3410';
const head = '<circle cx="64" cy="64" r="58" fill="#ffcb3d" stroke="#f0a51e" stroke-width="4"/>';
const cheeks =
  '<g fill="#ff9a6b" opacity=".75"><ellipse cx="28" cy="76" rx="11" ry="8"/><ellipse cx="100" cy="76" rx="11" ry="8"/></g>';
const eyes = `<g fill="${ink}"><ellipse cx="44" cy="52" rx="8" ry="11"/><ellipse cx="84" cy="52" rx="8" ry="11"/></g>`;
const openSmile = `<path fill="${ink}" d="M34 76h60a30 28 0 0 1-60 0z"/><path fill="#ff6f7d" d="M47 96a17 13 0 0 1 34 0 30 28 0 0 1-34 0z"/>`;
const closedSmile = `<path fill="none" stroke="${ink}" stroke-width="7" stroke-linecap="round" d="M38 78q26 26 52 0"/>`;

const faces = {
  smile: head + cheeks + eyes + openSmile,
  hearts: `${head}${openSmile}<g fill="#f2385a"><path transform="translate(16 24) scale(.42)" d="${heartPath}"/><path transform="translate(58 24) scale(.42)" d="${heartPath}"/></g>`,
  cool: `${head}${closedSmile}<path fill="#2b2f3f" d="M14 42h100v10c0 12-8 20-20 20S74 66 70 54q-6-5-12 0c-4 12-12 18-24 18S14 64 14 52z"/><path fill="none" stroke="#8fa2c8" stroke-width="5" stroke-linecap="round" d="M28 50l10 10M80 50l10 10"/>`,
  wink: `${head}${cheeks}<ellipse cx="44" cy="52" rx="8" ry="11" fill="${ink}"/><path fill="none" stroke="${ink}" stroke-width="7" stroke-linecap="round" d="M73 54q11-11 22 0"/><path fill="#ff6f7d" stroke="#e2495c" stroke-width="3" d="M56 88h28v12a14 14 0 0 1-28 0z"/><path fill="none" stroke="${ink}" stroke-width="7" stroke-linecap="round" d="M36 78q28 20 56 0"/>`,
};

const heart = `<path fill="#f2385a" d="${heartPath}"/><path fill="none" stroke="#ff9fb0" stroke-width="8" stroke-linecap="round" d="M24 46q0-16 14-18"/>`;
const star = `<path fill="#ffcb3d" stroke="#f0a51e" stroke-width="8" stroke-linejoin="round" d="${starPath(64, 68, 56, 29)}"/><g fill="${ink}"><ellipse cx="52" cy="64" rx="5" ry="8"/><ellipse cx="76" cy="64" rx="5" ry="8"/></g><path fill="none" stroke="${ink}" stroke-width="5" stroke-linecap="round" d="M54 80q10 9 20 0"/>`;
const cloud = 'M-24 14a13 13 0 0 1 1-26 18 18 0 0 1 33-5A15 15 0 0 1 22 14z';
const bows = `<g fill="none" stroke-width="9">${['#f2385a', '#ff9233', '#ffcf33', '#3fbf6b', '#3d8bea', '#8a4fd0'].map((colour, i) => `<path stroke="${colour}" d="M${10 + 9 * i} 98a${54 - 9 * i} ${54 - 9 * i} 0 0 1 ${108 - 18 * i} 0"/>`).join('')}</g>`;
const rainbow = `${bows}<g fill="#fff" stroke="#c7d6ea" stroke-width="3"><path d="${cloud}" transform="translate(34 98)"/><path d="${cloud}" transform="translate(94 98)"/></g>`;

/** @param {number} t */
const steam = (t) =>
  `<g fill="none" stroke="#b9c6d6" stroke-width="6" stroke-linecap="round">${[44, 64, 84].map((x, i) => `<path d="M${x} 36q${round(9 * Math.cos(turn * t + i))}-9 0-17t0-13"/>`).join('')}</g>`;
const mug = `<path fill="none" stroke="#3d8bea" stroke-width="10" d="M94 62h8a14 14 0 0 1 0 30h-10"/><path fill="#4f9cf5" d="M24 46h76v50a20 20 0 0 1-20 20H44a20 20 0 0 1-20-20z"/><ellipse cx="62" cy="47" rx="38" ry="9" fill="#7a4a26" stroke="#a9d0ff" stroke-width="4"/><g fill="#fff"><circle cx="49" cy="78" r="5"/><circle cx="75" cy="78" r="5"/></g><path fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round" d="M53 91q9 8 18 0"/>`;

/** @param {string} body @param {number} edgePx */
const emojiSvg = (body, edgePx) => svg(edgePx, edgePx, body, '0 0 128 128');

/** A smile that jumps, squeezed as it lands. @type {Scene} */
const jumping = (t) => {
  const up = Math.abs(Math.sin((turn / 2) * t));
  const squeeze = up < 0.3 ? 0.16 * (1 - up / 0.3) : 0;
  return emojiSvg(
    `<g transform="translate(64 ${round(126 - 22 * up)}) scale(${round(0.8 * (1 + squeeze))} ${round(0.8 * (1 - squeeze))}) translate(-64 -124)">${faces.smile}</g>`,
    64,
  );
};

/** @type {Scene} */
const beating = (t) => {
  const size = 0.8 + 0.12 * Math.sin(turn * t) + 0.06 * Math.sin(2 * turn * t);
  return emojiSvg(
    `<g transform="translate(64 66) scale(${round(size)}) translate(-64 -64)">${heart}</g>`,
    96,
  );
};

/** A smile with a paper hat under falling confetti. @type {Scene} */
const partying = (t) => {
  const pick = scatter(20);
  const colours = ['#f2385a', '#3d8bea', '#3fbf6b', '#8a4fd0', '#ff9233'];
  const confetti = Array.from({ length: 16 }, (_, i) => {
    const x = pick(4, 124);
    const y = ((pick(0, 1) + t) % 1) * 148 - 10;
    return `<rect x="-4" y="-3" width="8" height="6" fill="${colours[i % 5]}" transform="translate(${x} ${round(y)}) rotate(${round(pick(0, 360) + 360 * t)})"/>`;
  });
  const sway = round(7 * Math.sin(turn * t));
  const hat =
    '<path fill="#3d8bea" d="M40 34L72-18l24 50q-28-8-56 2z"/><path fill="none" stroke="#fff" stroke-width="6" d="M52 16q18-4 32 0M62 0q10-2 16 0"/><circle cx="72" cy="-20" r="9" fill="#f2385a"/>';
  return emojiSvg(
    `${confetti.join('')}<g transform="rotate(${sway} 64 120) translate(64 74) scale(.74) translate(-64 -60)">${faces.smile}${hat}</g>`,
    128,
  );
};

// ---- The cat, on a canvas of 320 x 320 -------------------------------------------------------

/** @typedef {{ fur: string, stripe: string, belly: string }} Coat */

/** @type {Record<'grey' | 'ginger' | 'cream', Coat>} */
const coats = {
  grey: { fur: '#8d9bb5', stripe: '#6b7a97', belly: '#e9eef7' },
  ginger: { fur: '#f5a352', stripe: '#d97b29', belly: '#fff0dc' },
  cream: { fur: '#f0dfc8', stripe: '#cfae87', belly: '#fffaf2' },
};

/** Silhouette of the cat, without colours, so that it can be laid under itself as a white rim. */
const catHead =
  '<path d="M82 108L76 34q0-10 9-5l47 33q28-6 56 0l47-33q9-5 9 5l-6 74q16 20 16 44c0 46-42 68-94 68s-94-22-94-68q0-24 16-44z"/>';
const catBody = '<path d="M92 306q-20-70 26-100h84q46 30 26 100z"/>';
/** @param {number} angle @param {string} [paw] */
const catArm = (angle, paw = '') =>
  `<g transform="rotate(${round(angle)} 226 262)"><rect x="204" y="178" width="46" height="104" rx="23"/>${paw}</g>`;

/** @param {Coat} coat @param {number} open how far the eyes are open, 0 to 1 */
function catFace({ fur, stripe, belly }, open) {
  const eye = (/** @type {number} */ x) =>
    open < 0.2
      ? `<path fill="none" stroke="#2d2a3a" stroke-width="6" stroke-linecap="round" d="M${x - 14} 142q14 10 28 0"/>`
      : `<ellipse cx="${x}" cy="140" rx="15" ry="${round(19 * open)}" fill="#2d2a3a"/><circle cx="${x + 5}" cy="${round(140 - 8 * open)}" r="5" fill="#fff"/>`;
  return `<g fill="${fur}">${catHead}</g>
    <path fill="#f7a6b4" d="M92 88l-3-38 30 22zM228 88l3-38-30 22z"/>
    <path fill="none" stroke="${stripe}" stroke-width="9" stroke-linecap="round" d="M160 68v26M138 72l4 18M182 72l-4 18M74 158l20 4M246 158l-20 4"/>
    <ellipse cx="160" cy="184" rx="46" ry="30" fill="${belly}"/>
    ${eye(116)}${eye(204)}
    <g fill="#ff9a9a" opacity=".6"><ellipse cx="90" cy="182" rx="15" ry="10"/><ellipse cx="230" cy="182" rx="15" ry="10"/></g>
    <path fill="#e8607a" d="M149 164h22q-2 12-11 14-9-2-11-14z"/>
    <path fill="none" stroke="#2d2a3a" stroke-width="5" stroke-linecap="round" d="M160 178v6q-2 12-13 12t-14-9M160 184q2 12 13 12t14-9"/>`;
}

/** The eyes shut for a tenth of the turn. @param {number} t */
const blink = (t) => (t >= 0.72 && t < 0.82 ? 0.1 : 1);

/** @param {Coat} coat @param {number} t */
function wavingCat(coat, t) {
  const angle = 34 + 16 * Math.sin(2 * turn * t);
  const pads =
    '<g fill="#f7a6b4" stroke="none"><ellipse cx="227" cy="211" rx="11" ry="9"/><circle cx="215" cy="197" r="4.5"/><circle cx="227" cy="191" r="4.5"/><circle cx="239" cy="197" r="4.5"/></g>';
  const rim = `<g fill="#fff" stroke="#fff" stroke-width="16" stroke-linejoin="round">${catBody}${catArm(angle)}${catHead}</g>`;
  const body = `<g fill="${coat.fur}">${catBody}</g><ellipse cx="160" cy="274" rx="38" ry="34" fill="${coat.belly}"/>`;
  const feet = `<g fill="${coat.belly}" stroke="${coat.stripe}" stroke-width="4"><ellipse cx="124" cy="298" rx="24" ry="13"/><ellipse cx="196" cy="298" rx="24" ry="13"/></g>`;
  const arm = `<g fill="${coat.fur}" stroke="${coat.stripe}" stroke-width="4">${catArm(angle, pads)}</g>`;
  return `${rim}${body}${feet}${arm}${catFace(coat, blink(t))}`;
}

/** @param {Coat} coat @param {string} ground @param {string} sun @param {number} edgePx @returns {Scene} */
const catPortrait = (coat, ground, sun, edgePx) => (t) =>
  svg(
    edgePx,
    edgePx,
    `<rect width="320" height="320" fill="${ground}"/><circle cx="160" cy="170" r="132" fill="${sun}"/>
     <g transform="translate(0 ${round(26 + 5 * Math.sin(turn * t))})"><g fill="${coat.fur}">${catBody}</g>${catFace(coat, blink(t))}</g>`,
    '0 0 320 320',
  );

/** @type {Scene} */
const waveSticker = (t) => svg(320, 320, wavingCat(coats.ginger, t), '-6 -6 332 332');

// ---- Other stickers, icons and landscapes ----------------------------------------------------

/** A rocket on its way; flat colours and hard edges, as a GIF likes them. @type {Scene} */
const rocketSticker = (t) => {
  const pick = scatter(8);
  const streaks = Array.from({ length: 9 }, () => {
    const x = pick(20, 300);
    const y = ((pick(0, 1) + t) % 1) * 400 - 40;
    return `<rect x="${x}" y="${round(y)}" width="5" height="30" rx="2.5" fill="#9db4ff"/>`;
  });
  const flame = 1 + 0.18 * Math.sin(3 * turn * t);
  const sway = round(4 * Math.sin(turn * t));
  const hull = 'M160 24c38 36 48 84 40 160h-80c-8-76 2-124 40-160z';
  const fins = 'M122 130q-40 26-36 88l38-26zM198 130q40 26 36 88l-38-26z';
  return svg(
    320,
    320,
    `${streaks.join('')}<g transform="translate(0 ${sway})">
      <g transform="translate(160 186) scale(1 ${round(flame)})"><path fill="#ff9233" d="M-32 0h64q4 44-32 92-36-48-32-92z"/><path fill="#ffdf5e" d="M-16 0h32q3 28-16 54-19-26-16-54z"/></g>
      <g fill="#fff" stroke="#fff" stroke-width="14" stroke-linejoin="round"><path d="${hull}"/><path d="${fins}"/></g>
      <path fill="#f2385a" d="${fins}"/><path fill="#eef2fb" d="${hull}"/>
      <path fill="#f2385a" d="M160 24c17 16 28 34 34 55h-68c6-21 17-39 34-55z"/>
      <circle cx="160" cy="118" r="22" fill="#3d8bea" stroke="#2b3a67" stroke-width="8"/>
      <path fill="#2b3a67" d="M118 172h84v16h-84z"/></g>`,
  );
};

const mugSticker = svg(
  320,
  320,
  `<g fill="#fff" stroke="#fff" stroke-width="13" stroke-linejoin="round"><path d="M24 46h76v50a20 20 0 0 1-20 20H44a20 20 0 0 1-20-20z"/><path fill="none" stroke-width="23" d="M94 62h8a14 14 0 0 1 0 30h-10"/><ellipse cx="62" cy="47" rx="38" ry="9"/></g>${steam(0.1)}${mug}`,
  '-4 -2 132 132',
);

/** A cloud that rains under its rainbow. Wider than high. @type {Scene} */
const rainSticker = (t) => {
  const drops = [52, 76, 100, 124, 148].map((x, i) => {
    const y = 118 + ((t + i * 0.37) % 1) * 30;
    return `<path fill="#3d8bea" d="M${x} ${round(y)}q8 11 0 15-8-4 0-15z"/>`;
  });
  return svg(
    240,
    160,
    `<g transform="translate(96 -6) scale(1.1)">${bows}</g>${drops.join('')}<path d="${cloud}" transform="translate(100 88) scale(2.5)" fill="#fff" stroke="#c7d6ea" stroke-width="1.6"/><path d="${cloud}" transform="translate(210 104)" fill="#fff" stroke="#c7d6ea" stroke-width="3"/><g fill="#41506b"><circle cx="84" cy="88" r="6"/><circle cx="118" cy="88" r="6"/></g><path fill="none" stroke="#41506b" stroke-width="5" stroke-linecap="round" d="M92 102q9 9 18 0"/>`,
  );
};

/** @param {number} seed @param {number} count @param {number} w @param {number} h @param {number} t */
function stars(seed, count, w, h, t) {
  const pick = scatter(seed);
  return Array.from({ length: count }, (_, i) => {
    const radius = pick(0.8, 2.4) * (1 + 0.35 * Math.sin(turn * (t + i / count)));
    return `<circle cx="${pick(0, w)}" cy="${pick(0, h)}" r="${round(radius)}" fill="#fff"/>`;
  }).join('');
}

/** A planet with its ring and a moon that goes round. @param {number} edgePx @returns {Scene} */
const planet = (edgePx) => (t) => {
  const x = round(128 + 100 * Math.cos(turn * t));
  const y = round(128 + 34 * Math.sin(turn * t));
  const moon = `<circle cx="${x}" cy="${y}" r="13" fill="#ffe9a8"/>`;
  const ring = 'fill="none" stroke="#ffd27a" stroke-width="11"';
  return svg(
    edgePx,
    edgePx,
    `<rect width="256" height="256" fill="#241c52"/>${stars(11, 40, 256, 256, t)}${Math.sin(turn * t) < 0 ? moon : ''}
     <g transform="rotate(-16 128 128)"><path ${ring} d="M30 128a98 30 0 0 1 196 0"/>
     <circle cx="128" cy="128" r="62" fill="#ff7f6b"/><path fill="#e2597a" d="M69 146a62 62 0 0 0 118 0q-59 22-118 0z"/><path fill="#ffb199" d="M74 98q54 20 108 0a62 62 0 0 0-108 0z"/>
     <path ${ring} d="M30 128a98 30 0 0 0 196 0"/></g>${Math.sin(turn * t) < 0 ? '' : moon}`,
    '0 0 256 256',
  );
};

/** @param {number} w @param {number} h @returns {Scene} */
const night = (w, h) => (t) => {
  const shared = { w, h };
  const fall = t * 4;
  const comet =
    fall < 1
      ? `<path stroke="#fff" stroke-width="4" stroke-linecap="round" opacity="${round(1 - fall)}" d="M${round(w * (0.25 + 0.3 * fall))} ${round(h * (0.1 + 0.25 * fall))}l-70-${round(h * 0.12)}"/>`
      : '';
  return svg(
    w,
    h,
    `<rect width="${w}" height="${h}" fill="#1b2352"/><rect y="${h * 0.4}" width="${w}" height="${h * 0.6}" fill="#2a3470"/>${stars(3, 70, w, h * 0.6, t)}${comet}
     <circle cx="${w * 0.8}" cy="${h * 0.26}" r="${h * 0.13}" fill="#ffeeb5"/><circle cx="${round(w * 0.8 - h * 0.05)}" cy="${h * 0.22}" r="${h * 0.03}" fill="#f3d98c"/><circle cx="${round(w * 0.8 + h * 0.04)}" cy="${h * 0.3}" r="${h * 0.02}" fill="#f3d98c"/>
     ${hill({ ...shared, y: h * 0.62, swell: h * 0.09, waves: 2, shift: 0.1, fill: '#3b4690' })}
     ${hill({ ...shared, y: h * 0.74, swell: h * 0.07, waves: 3, shift: 0.4, fill: '#2f6d7a' })}
     ${hill({ ...shared, y: h * 0.87, swell: h * 0.05, waves: 2, shift: 0.8, fill: '#1c4f55' })}`,
  );
};

/** @param {number} w @param {number} h @returns {Scene} */
const sunset = (w, h) => (t) => {
  const sky = ['#ffdf8e', '#ffc16b', '#ff9d63', '#f77b6a'].map(
    (fill, i) =>
      `<rect y="${round(h * (0.42 - 0.14 * i))}" width="${w}" height="${round(h * 0.3)}" fill="${fill}"/>`,
  );
  const glints = [0.62, 0.7, 0.79, 0.89].map((y, i) => {
    const width = h * (0.34 - 0.05 * i) * (1 + 0.25 * Math.sin(turn * (t + i / 4)));
    return `<rect x="${round(w / 2 - width)}" y="${round(h * y)}" width="${round(2 * width)}" height="${round(h * 0.022)}" rx="${round(h * 0.011)}" fill="#ffe9b0"/>`;
  });
  const shared = { w, h };
  return svg(
    w,
    h,
    `<rect width="${w}" height="${h}" fill="#f77b6a"/>${sky.reverse().join('')}<circle cx="${w / 2}" cy="${h * 0.5}" r="${h * 0.26}" fill="#fff3c4"/>
     ${hill({ ...shared, y: h * 0.56, swell: h * 0.012, waves: 6, shift: t, fill: '#3f7fb5' })}
     ${hill({ ...shared, y: h * 0.7, swell: h * 0.02, waves: 4, shift: -t, fill: '#2f669b' })}
     ${hill({ ...shared, y: h * 0.85, swell: h * 0.028, waves: 3, shift: t, fill: '#234f80' })}${glints.join('')}`,
  );
};

/** Bunting, balloons and a cake. */
const party = (() => {
  const pick = scatter(77);
  const colours = ['#f2385a', '#ff9233', '#ffcf33', '#3fbf6b', '#3d8bea', '#8a4fd0'];
  const confetti = Array.from(
    { length: 120 },
    (_, i) =>
      `<rect width="9" height="6" rx="2" fill="${colours[i % 6]}" transform="translate(${pick(0, 640)} ${pick(0, 400)}) rotate(${pick(0, 180)})"/>`,
  );
  const bunting = Array.from({ length: 13 }, (_, i) => {
    const x = 8 + i * 50;
    const y = 14 + 30 * Math.sin((turn / 2) * (i / 12));
    return `<path fill="${colours[i % 6]}" d="M${x} ${round(y)}h36l-18 36z"/>`;
  });
  const balloons = [
    [110, 170, 0],
    [176, 136, 4],
    [470, 140, 3],
    [538, 178, 5],
  ].map(
    ([x = 0, y = 0, colour = 0]) =>
      `<path fill="none" stroke="#9aa3b5" stroke-width="2" d="M${x} ${y + 48}q14 50-4 110"/><ellipse cx="${x}" cy="${y}" rx="38" ry="48" fill="${colours[colour]}"/><ellipse cx="${x - 13}" cy="${y - 18}" rx="7" ry="13" fill="#fff" opacity=".5"/>`,
  );
  const candles = [268, 320, 372].map(
    (x, i) =>
      `<rect x="${x - 6}" y="176" width="12" height="46" rx="3" fill="${colours[i + 3]}"/><path fill="#ffb02e" d="M${x} 146q15 20 0 28-15-8 0-28z"/>`,
  );
  return svg(
    640,
    400,
    `<rect width="640" height="400" fill="#fff6e6"/>${confetti.join('')}${balloons.join('')}${bunting.join('')}${candles.join('')}
     <ellipse cx="320" cy="366" rx="170" ry="18" fill="#d5dbe6"/><rect x="200" y="220" width="240" height="142" rx="16" fill="#ff9fb5"/><path fill="#fff" d="M200 236q0-16 16-16h208q16 0 16 16v26q-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0z"/><path stroke="#e2597a" stroke-width="10" d="M204 316h232"/>`,
  );
})();

// ---- Encoding --------------------------------------------------------------------------------

const drawn = { source: 'drawn by tools/draw-samples.mjs', licence: 'Apache-2.0' };

/** @param {string} document @param {Recipe} encode @returns {() => Promise<Made>} */
const still = (document, encode) => async () => ({
  bytes: await encode(sharp(Buffer.from(document))).toBuffer(),
  ...drawn,
});

/**
 * @param {Scene} scene
 * @param {number[]} delay milliseconds, one for each frame: sharp leaves the rest at their default
 * @param {typeof gif} encode
 * @param {number} [loop] how often it is played; 0 is for ever
 * @returns {() => Promise<Made>}
 */
const animated =
  (scene, delay, encode, loop = 0) =>
  async () => {
    const frames = await Promise.all(
      delay.map((_, i) =>
        sharp(Buffer.from(scene(i / delay.length)))
          .png()
          .toBuffer(),
      ),
    );
    const image = sharp(frames, { join: { animated: true } });
    return { bytes: await encode(image, { delay, loop }).toBuffer(), ...drawn };
  };

/** @param {number} count @param {number} delayMs */
const even = (count, delayMs) => Array.from({ length: count }, () => delayMs);

/** @type {Recipe} */
const png = (image) => image.png({ compressionLevel: 9 });
/** @type {Recipe} */
const flatPng = (image) => image.png({ palette: true, colours: 128, dither: 0, effort: 10 });
/** @type {Recipe} */
const losslessWebp = (image) => image.webp({ lossless: true, effort: 6 });
/** @param {import('sharp').Sharp} image @param {{ delay: number[], loop: number }} timing */
const gif = (image, timing) =>
  image.gif({ ...timing, colours: 64, dither: 0, effort: 10, interFrameMaxError: 0 });
/** @type {typeof gif} */
const webp = (image, timing) => image.webp({ ...timing, quality: 80, effort: 6, minSize: true });

/** @param {string} text @returns {() => Promise<Made>} */
const text = (text) => async () => ({ bytes: Buffer.from(text), ...drawn });

// ---- Corpus ----------------------------------------------------------------------------------

/** Sources of the photos that are too large to be in `fixtures/corpus`. */
const largerSources = new Map([
  [
    'jpeg-large/libavif__dog_exif_extended_xmp_icc.jpg',
    'AOMediaCodec/libavif:tests/data/dog_exif_extended_xmp_icc.jpg@092276ce8909\tBSD-2-Clause (per-file, tests/data/README.md)',
  ],
  [
    'jpeg-large/squoosh__demo-large-photo.jpg',
    'GoogleChromeLabs/squoosh:src/shared/prerendered-app/Intro/imgs/demos/demo-large-photo.jpg@19beb1a7ab5a\tApache-2.0 (repo-level)',
  ],
  [
    'jpeg-large/imagers__test.jpg',
    'image-rs/image:examples/scaledown/test.jpg@2c5368b8de2f\tMIT OR Apache-2.0 (repo-level)',
  ],
  [
    'png-8/codeccorpus__23.png',
    'imazen/codec-corpus:kodak/23.png@55decfe826d3\tKodak: unrestricted use (codec-corpus kodak/LICENSE)',
  ],
  [
    'jpeg-photo/exifr__IMG_20180725_163423-tiny.jpg',
    'MikeKovarik/exifr:test/fixtures/IMG_20180725_163423-tiny.jpg@6cbf6e921688\tMIT (repo-level)',
  ],
  [
    'jpeg-photo/wuffs__harvesters.jpeg',
    'google/wuffs:test/data/harvesters.jpeg@2560db99aa19\tPD/CC0/Apache-2.0 OR MIT (per-file, test/data/README.md)',
  ],
]);

/** @param {string} file @returns {Promise<{ bytes: Buffer | undefined, source: string, licence: string }>} */
async function readCorpus(file) {
  const manifest = await readFile(path.join(fixturesDir, 'corpus', 'MANIFEST.tsv'), 'utf8');
  const row = manifest.split('\n').find((line) => line.startsWith(`${file}\t`));
  const [source, licence] = row
    ? row.split('\t').slice(2)
    : (largerSources.get(file) ?? '').split('\t');
  if (!source || !licence) throw new Error(`The source of ${file} is unknown`);
  for (const dir of corpusDirs) {
    const bytes = await readFile(path.join(dir, file)).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (bytes) return { bytes, source, licence };
  }
  return { bytes: undefined, source, licence };
}

/** The corpus file, byte for byte. @param {string} file @returns {() => Promise<Made>} */
const copied = (file) => async () => {
  const { bytes, source, licence } = await readCorpus(file);
  return { bytes, source: `corpus ${file} = ${source}`, licence };
};

/** @param {string} file @param {string} how what was done, for the index @param {Recipe} recipe @returns {() => Promise<Made>} */
const derived = (file, how, recipe) => async () => {
  const { bytes, source, licence } = await readCorpus(file);
  return {
    bytes: bytes && (await recipe(sharp(bytes)).toBuffer()),
    source: `${how} from corpus ${file} = ${source}`,
    licence,
  };
};

/** @param {string} file @param {number} w @param {number} h @param {import('sharp').ResizeOptions['position']} position @param {'jpeg' | 'webp' | 'png' | 'avif'} format */
const cropped = (file, w, h, position, format) =>
  derived(
    file,
    `sharp: upright, cropped (${position}) to ${w}x${h}, ${format}, no metadata`,
    (image) =>
      image
        .autoOrient()
        .resize(w, h, { fit: 'cover', position })
        .toFormat(
          format,
          format === 'png' ? { compressionLevel: 9 } : { quality: format === 'avif' ? 55 : 82 },
        ),
  );

const dog = 'jpeg-large/libavif__dog_exif_extended_xmp_icc.jpg';
const panda = 'jpeg-large/squoosh__demo-large-photo.jpg';
const dusk = 'jpeg-large/imagers__test.jpg';
const parrots = 'png-8/codeccorpus__23.png';
const lane = 'jpeg-large/exifr__IMG_20180725_163423.jpg';
const sofa = 'avif/libavif__sofa_grid1x5_420.avif';
const caps = 'avif/libavif__kodim03_yuv420_8bpc.avif';
const harvesters = 'jpeg-photo/wuffs__harvesters.jpeg';
const parisP3 = 'icc-wide/libavif__paris_exif_xmp_icc_gainmap_bigendian.jpg';

// ---- The samples -----------------------------------------------------------------------------

/** @param {string} key @param {string} what @param {Sample['make']} make @returns {Sample} */
const sample = (key, what, make) => ({ key: key.normalize('NFC'), what, make });

/** @param {string} name @param {string} what @param {Sample['make']} make @param {number} id */
const attached = (id, name, what, make) => sample(`attachments/1/${id}/${name}`, what, make);

const member = `guilds/${guild}/users/${user}`;
/** The delays differ, so that a lost or levelled delay shows. */
const unevenDelays = [80, 80, 80, 80, 120, 80, 80, 80, 80, 80, 240, 80];

const samples = [
  sample(
    `avatars/${user}/${stillHash}`,
    'red panda, JPEG 512x512',
    cropped(panda, 512, 512, 'centre', 'jpeg'),
  ),
  sample(
    `avatars/${user}/${animatedHash}`,
    'blinking cat, animated GIF 256x256, 12 frames, uneven delays',
    animated(catPortrait(coats.ginger, '#5a63d8', '#7e88f0', 256), unevenDelays, gif),
  ),
  sample(
    'avatars/1/ab12',
    'dog with a party hat, JPEG 768x576 with EXIF orientation 6 (upright 576x768)',
    derived(dog, 'sharp: scaled to 768x576, not rotated, EXIF and ICC kept', (image) =>
      image.resize(768, 576).keepExif().keepIccProfile().jpeg({ quality: 82 }),
    ),
  ),
  sample(
    'avatars/2/cd34',
    'party parrot, animated GIF 128x128, 10 frames, transparent',
    copied('emoji-small/parrot__parrot.gif'),
  ),
  sample(
    'avatars/3/ef56',
    'self-portrait with a straw hat, PNG 90x112: smaller than most sizes',
    copied('png-8/wuffs__hat.png'),
  ),
  sample(
    'avatars/4/gh78',
    'stained glass, WebP lossy 312x442',
    copied('webp-lossy/wuffs__hibiscus.regular.lossy.webp'),
  ),
  sample(
    'avatars/5/ij90',
    'tabby cat, progressive JPEG 320x240 with EXIF',
    copied('jpeg-progressive/imagers__cat.jpg'),
  ),
  sample(
    'avatars/6/kl12',
    'waving cat, PNG 512x512, transparent',
    still(svg(512, 512, wavingCat(coats.grey, 0.1), '-6 -6 332 332'), png),
  ),
  sample(
    'avatars/7/mn34',
    'blinking cat, animated WebP 256x256, 12 frames',
    animated(catPortrait(coats.cream, '#2f8f83', '#5fc0b0', 256), even(12, 90), webp),
  ),
  sample('avatars/8/op56', 'caps on a wall, AVIF 768x512', copied(caps)),
  sample(
    'avatars/9/qr78',
    'sunset over Paris, JPEG 403x302 with GPS EXIF (0, 0), XMP and ICC',
    copied('jpeg-gps/libavif__paris_exif_xmp_icc.jpg'),
  ),
  sample('avatars/10/st90', 'concert, grey JPEG 400x267', copied('jpeg-gray/sharp__concert.jpg')),

  sample(`icons/${guild}/${stillHash}`, 'planet, PNG 512x512', still(planet(512)(0.12), png)),
  sample(
    `icons/${guild}/${animatedHash}`,
    'planet with a moon, animated GIF 256x256, 16 frames',
    animated(planet(256), even(16, 100), gif),
  ),
  sample('icons/1/ab12', 'parrots, JPEG 480x480', cropped(parrots, 480, 480, 'attention', 'jpeg')),
  sample(
    'icons/2/cd34',
    'stained glass made of triangles, JPEG 312x442',
    copied('jpeg-photo/wuffs__hibiscus.primitive.jpeg'),
  ),
  sample(
    'icons/3/ef56',
    'planet with a moon, animated WebP 256x256, 16 frames',
    animated(planet(256), even(16, 100), webp),
  ),
  sample(
    'icons/4/gh78',
    'toy bricks, lossless WebP 160x120',
    copied('webp-lossless/wuffs__bricks-color.lossless.webp'),
  ),

  sample(
    `banners/${guild}/${stillHash}`,
    'country lane, JPEG 1200x400',
    cropped(lane, 1200, 400, 'centre', 'jpeg'),
  ),
  sample(
    `banners/${guild}/${animatedHash}`,
    'night with a shooting star, animated WebP 960x320, 16 frames',
    animated(night(960, 320), even(16, 100), webp),
  ),
  sample(
    `banners/${user}/${stillHash}`,
    'cranes at dusk, JPEG 1200x400',
    cropped(dusk, 1200, 400, 'centre', 'jpeg'),
  ),
  sample(
    `banners/${user}/${animatedHash}`,
    'sunset at sea, animated GIF 600x200, 12 frames',
    animated(sunset(600, 200), even(12, 120), gif),
  ),
  sample('banners/1/ab12', 'parrots, PNG 768x256', cropped(parrots, 768, 256, 'centre', 'png')),
  sample('banners/2/cd34', 'lounge, AVIF 1024x340', cropped(sofa, 1024, 340, 'centre', 'avif')),
  sample('banners/3/ef56', 'sunset at sea, PNG 1500x500', still(sunset(1500, 500)(0), flatPng)),

  sample(`splashes/${guild}/${stillHash}`, 'The Harvesters, JPEG 1165x859', copied(harvesters)),
  sample(
    `splashes/${guild}/${animatedHash}`,
    'night with a shooting star, animated WebP 800x450, 16 frames',
    animated(night(800, 450), even(16, 100), webp),
  ),
  sample(
    'splashes/1/ab12',
    'country lane, WebP 1600x900',
    cropped(lane, 1600, 900, 'centre', 'webp'),
  ),
  sample(
    'splashes/2/cd34',
    'riverside, JPEG 400x300 with GPS EXIF and a gain map',
    copied('jpeg-gps/libavif__seine_sdr_gainmap_srgb.jpg'),
  ),
  sample('splashes/3/ef56', 'sunset over Paris, JPEG 403x302, Display P3', copied(parisP3)),

  sample(
    `embed-splashes/${guild}/${stillHash}`,
    'cranes at dusk, JPEG 1200x675',
    cropped(dusk, 1200, 675, 'centre', 'jpeg'),
  ),
  sample(
    `embed-splashes/${guild}/${animatedHash}`,
    'sunset at sea, animated WebP 800x450, 12 frames',
    animated(sunset(800, 450), even(12, 120), webp),
  ),
  sample('embed-splashes/1/ab12', 'lounge, AVIF 1024x770', copied(sofa)),
  sample('embed-splashes/2/cd34', 'night, PNG 1280x720', still(night(1280, 720)(0.06), flatPng)),

  sample(
    `${member}/avatars/${stillHash}`,
    'dog with a party hat, PNG 384x384',
    cropped(dog, 384, 384, 'centre', 'png'),
  ),
  sample(
    `${member}/avatars/${animatedHash}`,
    'blinking cat, animated WebP 256x256, 12 frames, uneven delays',
    animated(catPortrait(coats.grey, '#c8507a', '#ea86a6', 256), unevenDelays, webp),
  ),
  sample(
    `${member}/banners/${stillHash}`,
    'red panda, WebP 1200x400',
    cropped(panda, 1200, 400, 'centre', 'webp'),
  ),
  sample(
    `${member}/banners/${animatedHash}`,
    'night with a shooting star, animated GIF 600x200, 16 frames',
    animated(night(600, 200), even(16, 100), gif),
  ),
  sample(
    'guilds/1/users/1/avatars/ab12',
    'caps on a wall, JPEG 400x400',
    cropped(caps, 400, 400, 'left', 'jpeg'),
  ),
  sample(
    'guilds/1/users/2/avatars/cd34',
    'rocket, animated GIF 320x320, 12 frames, transparent',
    animated(rocketSticker, even(12, 60), gif),
  ),
  sample(
    'guilds/1/users/1/banners/ab12',
    'The Harvesters, JPEG 1164x388',
    cropped(harvesters, 1164, 388, 'centre', 'jpeg'),
  ),
  sample(
    'guilds/1/users/2/banners/cd34',
    'sunset at sea, animated WebP 600x200, 12 frames',
    animated(sunset(600, 200), even(12, 120), webp),
  ),

  sample(
    `emojis/${emoji}`,
    'party smile, animated GIF 128x128, 12 frames, transparent',
    animated(partying, even(12, 80), gif),
  ),
  sample('emojis/1', 'smile, PNG 128x128', still(emojiSvg(faces.smile, 128), png)),
  sample('emojis/2', 'heart eyes, PNG 128x128', still(emojiSvg(faces.hearts, 128), png)),
  sample('emojis/3', 'sunglasses, PNG 96x96', still(emojiSvg(faces.cool, 96), png)),
  sample('emojis/4', 'wink, WebP lossless 96x96', still(emojiSvg(faces.wink, 96), losslessWebp)),
  sample('emojis/5', 'heart, PNG 64x64', still(emojiSvg(heart, 64), png)),
  sample('emojis/6', 'star, palette PNG 72x72', still(emojiSvg(star, 72), flatPng)),
  sample('emojis/7', 'rainbow, PNG 48x48', still(emojiSvg(rainbow, 48), png)),
  sample('emojis/8', 'hot cocoa, PNG 32x32', still(emojiSvg(steam(0.1) + mug, 32), png)),
  sample(
    'emojis/9',
    'jumping smile, animated GIF 64x64, 14 frames, transparent',
    animated(jumping, even(14, 50), gif),
  ),
  sample(
    'emojis/10',
    'beating heart, animated WebP 96x96, 12 frames, transparent',
    animated(beating, even(12, 70), webp),
  ),
  sample(
    'emojis/11',
    'party parrot, animated GIF 128x128, 10 frames, transparent',
    copied('emoji-small/parrot__parrot.gif'),
  ),

  sample(
    `stickers/${sticker}`,
    'waving cat, animated WebP 320x320, 16 frames, transparent',
    animated(waveSticker, even(16, 70), webp),
  ),
  sample(
    'stickers/1',
    'rocket, animated GIF 320x320, 12 frames, transparent',
    animated(rocketSticker, even(12, 60), gif),
  ),
  sample(
    'stickers/2',
    'hot cocoa, still WebP lossless 320x320, transparent',
    still(mugSticker, losslessWebp),
  ),
  sample(
    'stickers/3',
    'rain and rainbow, animated WebP 240x160, 10 frames, uneven delays, played 3 times',
    animated(rainSticker, [90, 90, 90, 90, 150, 90, 90, 90, 90, 300], webp, 3),
  ),
  sample('stickers/4', 'waving cat, still PNG 320x320, transparent', still(waveSticker(0.1), png)),

  sample(
    `attachments/${channel}/${attachment}/my photo é.png`,
    'sunset over Paris, PNG 403x302 with ICC, EXIF and XMP; a space and é (NFC) in the name',
    copied('png-8/libavif__paris_icc_exif_xmp.png'),
  ),
  attached(
    1,
    'country-lane.jpg',
    'country lane, phone JPEG 1012x759 with GPS EXIF',
    copied('jpeg-photo/exifr__IMG_20180725_163423-tiny.jpg'),
  ),
  attached(
    2,
    'waterfall.jpg',
    'waterfall with its edges labelled, JPEG 1200x1800 with EXIF orientation 6 (upright 1800x1200)',
    copied('jpeg-orientation/exiforient__Landscape_6.jpg'),
  ),
  attached(
    3,
    'harvesters-cmyk.jpg',
    'The Harvesters, CMYK JPEG 500x369 without a profile',
    copied('jpeg-cmyk/derived__harvesters-cmyk-noicc.jpg'),
  ),
  attached(
    4,
    'concert-grey.jpg',
    'concert, grey JPEG 400x267',
    copied('jpeg-gray/sharp__concert.jpg'),
  ),
  attached(
    5,
    'paris-display-p3.jpg',
    'sunset over Paris, JPEG 403x302, Display P3',
    copied(parisP3),
  ),
  attached(
    6,
    'moon.gif',
    'planet with a moon, animated GIF 320x320, 16 frames',
    animated(planet(320), even(16, 100), gif),
  ),
  attached(
    7,
    'waving-cat.webp',
    'waving cat, animated WebP 320x320, 16 frames, transparent',
    animated((t) => svg(320, 320, wavingCat(coats.grey, t), '-6 -6 332 332'), even(16, 70), webp),
  ),
  attached(
    8,
    'صورة العائلة.jpg',
    'tabby cat, progressive JPEG 320x240; an Arabic name ("family picture")',
    copied('jpeg-progressive/imagers__cat.jpg'),
  ),
  attached(
    9,
    '🎉 party.png',
    'cake and balloons, PNG 640x400; an emoji in the name',
    still(party, flatPng),
  ),
  attached(
    10,
    'draft #1 %20 cats & dogs.png',
    'dog with a party hat, PNG 480x320; #, %20 and & in the name',
    cropped(dog, 480, 320, 'centre', 'png'),
  ),
  attached(11, 'caps.avif', 'caps on a wall, AVIF 768x512', copied(caps)),
  attached(
    12,
    'red-panda.jpg',
    'red panda, JPEG 2400x1600',
    cropped(panda, 2400, 1600, 'centre', 'jpeg'),
  ),
  attached(13, 'minutes.pdf', 'PDF', copied('nonimage/filetype__fixture.pdf')),
  attached(14, 'romeo.txt', 'plain text', copied('nonimage/wuffs__romeo.txt')),
  attached(
    15,
    'clip.mp4',
    'MP4 video, 0.07 s of 640x356',
    copied('nonimage/filetype__fixture-imovie.mp4'),
  ),
  attached(
    16,
    'clip.webm',
    'WebM video, 0.07 s of 640x356',
    copied('nonimage/filetype__fixture.webm'),
  ),
  attached(17, 'jingle.mp3', 'MP3 audio, under a second', copied('nonimage/filetype__fixture.mp3')),
  attached(18, 'archive.zip', 'ZIP archive', copied('nonimage/wuffs__archive.zip')),
  attached(19, 'things.json', 'JSON', copied('nonimage/wuffs__json-things.formatted.json')),
  attached(
    20,
    'page.html',
    'HTML with a script, which no browser may run',
    text(
      '<!doctype html>\n<meta charset="utf-8">\n<title>Hello</title>\n<p id="verdict">No script has run.</p>\n<script>document.getElementById("verdict").textContent = "A SCRIPT HAS RUN"</script>\n',
    ),
  ),
  attached(
    21,
    'cat.svg',
    'SVG with a script, which no browser may run',
    text(
      svg(
        320,
        320,
        `${wavingCat(coats.cream, 0.1)}<script>document.documentElement.textContent = ""</script>`,
        '-6 -6 332 332',
      ),
    ),
  ),
];

const bytesOfAll = await writeSamples();
process.stdout.write(`${samples.length} originals, ${(bytesOfAll / 1e6).toFixed(2)} MB\n`);

/** Writes every original and the index; returns the sum of their bytes. */
async function writeSamples() {
  const rows = ['key\twhat it is\tsource\tlicence'];
  let sum = 0;
  for (const { key, what, make } of samples) {
    const { bytes, source, licence } = await make();
    const file = path.join(originalsDir, ...key.split('/'));
    if (bytes) {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, bytes);
    }
    sum += (await stat(file)).size;
    rows.push([key, what, source, licence].join('\t'));
  }
  await writeFile(path.join(fixturesDir, 'originals-index.tsv'), `${rows.join('\n')}\n`);
  await refuseStrays();
  return sum;
}

/** Rejects files without a row: their provenance is unknown. */
async function refuseStrays() {
  const named = new Set(samples.map(({ key }) => key));
  if (named.size !== samples.length) throw new Error('Two samples have the same key');
  const entries = await readdir(originalsDir, { recursive: true, withFileTypes: true });
  const strays = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      path
        .relative(originalsDir, path.join(entry.parentPath, entry.name))
        .split(path.sep)
        .join('/'),
    )
    .filter((key) => !named.has(key));
  if (strays.length > 0) throw new Error(`Not in the index: ${strays.join(', ')}`);
}
