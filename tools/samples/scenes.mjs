/** Scenes of the drawn samples, as SVG documents. */

/** @typedef {(t: number, w: number, h: number) => string} Scene  At the moment t of one turn, 0 ≤ t < 1; w, h in pixels. */

const turn = 2 * Math.PI;
const round = (n) => Math.round(n * 100) / 100;

const svg = (w, h, body, viewBox = `0 0 ${w} ${h}`) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="${viewBox}">${body}</svg>`;

/** A Lehmer generator, so that confetti and stars have the same positions in every run. @param {number} seed */
function scatter(seed) {
  let state = seed;
  return (/** @type {number} */ low, /** @type {number} */ high) => {
    state = (state * 48271) % 2147483647;
    return round(low + (state / 2147483647) * (high - low));
  };
}

/** Fills the area below a sine line, which repeats after one turn. */
function hill({ w, h, y, swell, waves, shift, fill }) {
  const points = Array.from({ length: 49 }, (_, i) => {
    const x = i / 48;
    return `${round(x * w)} ${round(y + swell * Math.sin(turn * (waves * x + shift)))}`;
  });
  return `<path fill="${fill}" d="M${points.join('L')}V${h}H0Z"/>`;
}

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

const steam = (t) =>
  `<g fill="none" stroke="#b9c6d6" stroke-width="6" stroke-linecap="round">${[44, 64, 84].map((x, i) => `<path d="M${x} 36q${round(9 * Math.cos(turn * t + i))}-9 0-17t0-13"/>`).join('')}</g>`;
const mug = `<path fill="none" stroke="#3d8bea" stroke-width="10" d="M94 62h8a14 14 0 0 1 0 30h-10"/><path fill="#4f9cf5" d="M24 46h76v50a20 20 0 0 1-20 20H44a20 20 0 0 1-20-20z"/><ellipse cx="62" cy="47" rx="38" ry="9" fill="#7a4a26" stroke="#a9d0ff" stroke-width="4"/><g fill="#fff"><circle cx="49" cy="78" r="5"/><circle cx="75" cy="78" r="5"/></g><path fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round" d="M53 91q9 8 18 0"/>`;

const emojiSvg = (body, w, h) => svg(w, h, body, '0 0 128 128');

const stillEmoji = (body) => (_t, w, h) => emojiSvg(body, w, h);

/** A smile that jumps, squeezed as it lands. @type {Scene} */
const jumping = (t, w, h) => {
  const up = Math.abs(Math.sin((turn / 2) * t));
  const squeeze = up < 0.3 ? 0.16 * (1 - up / 0.3) : 0;
  return emojiSvg(
    `<g transform="translate(64 ${round(126 - 22 * up)}) scale(${round(0.8 * (1 + squeeze))} ${round(0.8 * (1 - squeeze))}) translate(-64 -124)">${faces.smile}</g>`,
    w,
    h,
  );
};

const beating = (t, w, h) => {
  const size = 0.8 + 0.12 * Math.sin(turn * t) + 0.06 * Math.sin(2 * turn * t);
  return emojiSvg(
    `<g transform="translate(64 66) scale(${round(size)}) translate(-64 -64)">${heart}</g>`,
    w,
    h,
  );
};

/** A smile with a paper hat under falling confetti. @type {Scene} */
const partying = (t, w, h) => {
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
    w,
    h,
  );
};

// ---- The cat, on a canvas of 320 x 320 -------------------------------------------------------

const coats = {
  grey: { fur: '#8d9bb5', stripe: '#6b7a97', belly: '#e9eef7' },
  ginger: { fur: '#f5a352', stripe: '#d97b29', belly: '#fff0dc' },
  cream: { fur: '#f0dfc8', stripe: '#cfae87', belly: '#fffaf2' },
};

/** Outline of the cat without colours, because its white rim uses it, too. */
const catHead =
  '<path d="M82 108L76 34q0-10 9-5l47 33q28-6 56 0l47-33q9-5 9 5l-6 74q16 20 16 44c0 46-42 68-94 68s-94-22-94-68q0-24 16-44z"/>';
const catBody = '<path d="M92 306q-20-70 26-100h84q46 30 26 100z"/>';
const catArm = (angle, paw = '') =>
  `<g transform="rotate(${round(angle)} 226 262)"><rect x="204" y="178" width="46" height="104" rx="23"/>${paw}</g>`;

/** @param {Coat} coat @param {number} open  Of the eyes, 0 to 1 */
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

/** Closes the eyes for a tenth of the turn. @param {number} t */
const blink = (t) => (t >= 0.72 && t < 0.82 ? 0.1 : 1);

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

const catPortrait = (coat, ground, sun) => (t, w, h) =>
  svg(
    w,
    h,
    `<rect width="320" height="320" fill="${ground}"/><circle cx="160" cy="170" r="132" fill="${sun}"/>
     <g transform="translate(0 ${round(26 + 5 * Math.sin(turn * t))})"><g fill="${coat.fur}">${catBody}</g>${catFace(coat, blink(t))}</g>`,
    '0 0 320 320',
  );

const waving =
  (coat, suffix = '') =>
  (t, w, h) =>
    svg(w, h, wavingCat(coat, t) + suffix, '-6 -6 332 332');

// ---- Other stickers, icons and landscapes ----------------------------------------------------

/** A flying rocket: flat colours and hard edges suit GIFs. @type {Scene} */
const rocket = (t, w, h) => {
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
    w,
    h,
    `${streaks.join('')}<g transform="translate(0 ${sway})">
      <g transform="translate(160 186) scale(1 ${round(flame)})"><path fill="#ff9233" d="M-32 0h64q4 44-32 92-36-48-32-92z"/><path fill="#ffdf5e" d="M-16 0h32q3 28-16 54-19-26-16-54z"/></g>
      <g fill="#fff" stroke="#fff" stroke-width="14" stroke-linejoin="round"><path d="${hull}"/><path d="${fins}"/></g>
      <path fill="#f2385a" d="${fins}"/><path fill="#eef2fb" d="${hull}"/>
      <path fill="#f2385a" d="M160 24c17 16 28 34 34 55h-68c6-21 17-39 34-55z"/>
      <circle cx="160" cy="118" r="22" fill="#3d8bea" stroke="#2b3a67" stroke-width="8"/>
      <path fill="#2b3a67" d="M118 172h84v16h-84z"/></g>`,
    '0 0 320 320',
  );
};

const mugSticker = (t, w, h) =>
  svg(
    w,
    h,
    `<g fill="#fff" stroke="#fff" stroke-width="13" stroke-linejoin="round"><path d="M24 46h76v50a20 20 0 0 1-20 20H44a20 20 0 0 1-20-20z"/><path fill="none" stroke-width="23" d="M94 62h8a14 14 0 0 1 0 30h-10"/><ellipse cx="62" cy="47" rx="38" ry="9"/></g>${steam(t)}${mug}`,
    '-4 -2 132 132',
  );

/** A cloud that rains under its rainbow, wider than high. @type {Scene} */
const rain = (t, w, h) => {
  const drops = [52, 76, 100, 124, 148].map((x, i) => {
    const y = 118 + ((t + i * 0.37) % 1) * 30;
    return `<path fill="#3d8bea" d="M${x} ${round(y)}q8 11 0 15-8-4 0-15z"/>`;
  });
  return svg(
    w,
    h,
    `<g transform="translate(96 -6) scale(1.1)">${bows}</g>${drops.join('')}<path d="${cloud}" transform="translate(100 88) scale(2.5)" fill="#fff" stroke="#c7d6ea" stroke-width="1.6"/><path d="${cloud}" transform="translate(210 104)" fill="#fff" stroke="#c7d6ea" stroke-width="3"/><g fill="#41506b"><circle cx="84" cy="88" r="6"/><circle cx="118" cy="88" r="6"/></g><path fill="none" stroke="#41506b" stroke-width="5" stroke-linecap="round" d="M92 102q9 9 18 0"/>`,
    '0 0 240 160',
  );
};

function stars(seed, count, w, h, t) {
  const pick = scatter(seed);
  return Array.from({ length: count }, (_, i) => {
    const radius = pick(0.8, 2.4) * (1 + 0.35 * Math.sin(turn * (t + i / count)));
    return `<circle cx="${pick(0, w)}" cy="${pick(0, h)}" r="${round(radius)}" fill="#fff"/>`;
  }).join('');
}

/** A planet with its ring and an orbiting moon. @type {Scene} */
const planet = (t, w, h) => {
  const x = round(128 + 100 * Math.cos(turn * t));
  const y = round(128 + 34 * Math.sin(turn * t));
  const moon = `<circle cx="${x}" cy="${y}" r="13" fill="#ffe9a8"/>`;
  const ring = 'fill="none" stroke="#ffd27a" stroke-width="11"';
  return svg(
    w,
    h,
    `<rect width="256" height="256" fill="#241c52"/>${stars(11, 40, 256, 256, t)}${Math.sin(turn * t) < 0 ? moon : ''}
     <g transform="rotate(-16 128 128)"><path ${ring} d="M30 128a98 30 0 0 1 196 0"/>
     <circle cx="128" cy="128" r="62" fill="#ff7f6b"/><path fill="#e2597a" d="M69 146a62 62 0 0 0 118 0q-59 22-118 0z"/><path fill="#ffb199" d="M74 98q54 20 108 0a62 62 0 0 0-108 0z"/>
     <path ${ring} d="M30 128a98 30 0 0 0 196 0"/></g>${Math.sin(turn * t) < 0 ? '' : moon}`,
    '0 0 256 256',
  );
};

const night = (t, w, h) => {
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

const sunset = (t, w, h) => {
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

/** Bunting, balloons and a cake. @type {Scene} */
const party = (_t, w, h) => {
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
    w,
    h,
    `<rect width="640" height="400" fill="#fff6e6"/>${confetti.join('')}${balloons.join('')}${bunting.join('')}${candles.join('')}
     <ellipse cx="320" cy="366" rx="170" ry="18" fill="#d5dbe6"/><rect x="200" y="220" width="240" height="142" rx="16" fill="#ff9fb5"/><path fill="#fff" d="M200 236q0-16 16-16h208q16 0 16 16v26q-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0-15 24-30 0z"/><path stroke="#e2597a" stroke-width="10" d="M204 316h232"/>`,
    '0 0 640 400',
  );
};

const script = '<script>document.documentElement.textContent = ""</script>';

/** Scenes by the names in `samples.tsv`. @type {Record<string, Scene>} */
export const scenes = {
  beating,
  'cat-with-script': waving(coats.cream, script),
  cool: stillEmoji(faces.cool),
  heart: stillEmoji(heart),
  hearts: stillEmoji(faces.hearts),
  jumping,
  mug: (t, w, h) => emojiSvg(steam(t) + mug, w, h),
  'mug-sticker': mugSticker,
  night,
  party,
  partying,
  planet,
  'portrait-cream': catPortrait(coats.cream, '#2f8f83', '#5fc0b0'),
  'portrait-ginger': catPortrait(coats.ginger, '#5a63d8', '#7e88f0'),
  'portrait-grey': catPortrait(coats.grey, '#c8507a', '#ea86a6'),
  rain,
  rainbow: stillEmoji(rainbow),
  rocket,
  smile: stillEmoji(faces.smile),
  star: stillEmoji(star),
  sunset,
  'waving-ginger': waving(coats.ginger),
  'waving-grey': waving(coats.grey),
  wink: stillEmoji(faces.wink),
};
