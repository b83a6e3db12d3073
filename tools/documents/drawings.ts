import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { settingTable } from '../../src/config/settings.ts';
import { clientLimits } from '../../src/http/connections/connections.ts';

/** Drawings of the documents, as SVG. They follow the reader's colour scheme, also in an `<img>`. */

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Box extends Point {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly lines: readonly string[];
  /** `pure`: no I/O; `apart`: another process. */
  readonly kind?: 'pure' | 'apart' | undefined;
}

const STYLE = `
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.small { font-size: 12px; fill: #59636e }
.refused { font-size: 12px; fill: #b35900 }
rect { fill: #f6f8fa; stroke: #8c959f }
.pure { fill: #eef6ff }
.apart { fill: #fff8e6; stroke-dasharray: 5 3 }
path { stroke: #8c959f; fill: none; marker-end: url(#head) }
#head path { fill: #8c959f; stroke: none; marker-end: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  .refused { fill: #f0a050 }
  rect { fill: #161b22; stroke: #656c76 }
  .pure { fill: #12233a }
  .apart { fill: #2b2412 }
  path { stroke: #656c76 }
  #head path { fill: #656c76 }
}`;

const ARROW_HEAD =
  '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker>';

function drawSvg(width: number, height: number, title: string, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<style>${STYLE}
</style>
<defs>${ARROW_HEAD}</defs>
${parts.join('\n')}
</svg>
`;
}

function drawBox({ x, y, width, height, title, lines, kind = undefined }: Box): string {
  const className = kind === undefined ? '' : ` class="${kind}"`;
  const texts = lines.map((line, index) => drawText({ x: x + 12, y: y + 42 + 17 * index }, line));
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6"${className}/>`,
    `<text x="${x + 12}" y="${y + 22}" class="title">${title}</text>`,
    ...texts,
  ].join('\n');
}

function drawText({ x, y }: Point, text: string, className = 'small'): string {
  return `<text x="${x}" y="${y}" class="${className}">${text}</text>`;
}

function drawArrow(from: Point, to: Point): string {
  return `<path d="M${from.x} ${from.y} L${to.x} ${to.y}"/>`;
}

/** Modules of `src` by layer, from the top down, with their contents. */
const layers: readonly (readonly (readonly [module: string, lines: readonly string[]])[])[] = [
  [
    ['main, app', ['the process; connects the parts']],
    ['cli', ['check, put, render, sign, metadata;', 'purges and blocks of a running service']],
  ],
  [
    ['http', ['connections; media, uploads,', 'explorer; listeners of', 'operators and platform']],
    ['storage', ['directory, S3, other sites;', 'renderings, block list;', 'APIs of CDNs']],
    ['workers', ['slots, processes, sandboxes;', 'child/: sharp; video/: ffmpeg']],
    ['telemetry', ['log, metrics, traces,', 'readiness']],
  ],
  [
    [
      'pipeline',
      [
        'the service, through ports: originals, render, results, metadata, uploads, rates,',
        'blocks, purges, routes of the platform',
      ],
    ],
  ],
  [
    ['formats', ['headers of images and', 'videos']],
    ['contract', ['URLs, errors, keys,', 'signatures']],
    ['config', ['one table of variables']],
  ],
];

/** Processes of the running service, each started by an earlier one. */
const processes: readonly (readonly [title: string, lines: readonly string[], parent?: number])[] =
  [
    ['main process', ['all but child/, fork-server/', 'and the decoder']],
    ['fork server', ['starts the others; has no', 'files open'], 0],
    ['worker', ['child/: one for each slot,', 'in a sandbox'], 1],
    ['video decoder', ['ffmpeg: one for each frame,', 'in its own sandbox'], 1],
  ];

/** Returns the top directories of `src` that each of them imports. */
function readImports(): ReadonlyMap<string, ReadonlySet<string>> {
  const source = resolve('src');
  const directoryOf = (file: string): string =>
    file.includes('/') ? (file.split('/')[0] ?? '') : 'main, app';
  const imports = new Map<string, Set<string>>();
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!file.endsWith('.ts')) continue;
    const targets = imports.get(directoryOf(file)) ?? new Set();
    const text = readFileSync(join(source, file), 'utf8');
    for (const [, target = ''] of text.matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gms)) {
      targets.add(directoryOf(relative(source, resolve(source, dirname(file), target))));
    }
    imports.set(directoryOf(file), targets);
  }
  return imports;
}

const LAYER_HEIGHT = 126;
const DRAWING_WIDTH = 960;

/** Draws the modules of `src`, and arrows for the imports between layers. */
export function drawArchitecture(): string {
  const boxes = new Map<string, Box>();
  layers.forEach((modules, layer) => {
    const gap = 24;
    const width = (DRAWING_WIDTH - gap * (modules.length + 1)) / modules.length;
    modules.forEach(([title, lines], index) => {
      const x = Math.round(gap + index * (width + gap));
      const kind = layer === layers.length - 1 ? 'pure' : undefined;
      const size = { width: Math.round(width), height: 84 };
      boxes.set(title, { x, y: 20 + layer * LAYER_HEIGHT, ...size, title, lines, kind });
    });
  });
  const imports = readImports();
  const arrows = [...boxes].flatMap(([module, from]) =>
    [...(imports.get(module) ?? [])].flatMap((target) => {
      const to = boxes.get(target);
      if (to === undefined || to.y - from.y !== LAYER_HEIGHT) return [];
      const share = (box: Box, other: Box): number =>
        Math.min(Math.max(other.x + other.width / 2, box.x + 20), box.x + box.width - 20);
      return drawArrow(
        { x: Math.round(share(from, to)), y: from.y + from.height },
        { x: Math.round(share(to, from)), y: to.y },
      );
    }),
  );
  const top = 20 + layers.length * LAYER_HEIGHT;
  const legend = drawText(
    { x: 24, y: top - 16 },
    'Arrows: imports, from each level to the next one; none points up. Blue: pure, without I/O.',
  );
  const title = 'The directories of src, from the process down to the contract, and the processes';
  return drawSvg(DRAWING_WIDTH, top + 150, title, [
    ...arrows,
    ...[...boxes.values()].map(drawBox),
    legend,
    ...drawProcesses(top + 20),
  ]);
}

/** Draws the processes in a row, and an arrow from each to the process that it starts. */
function drawProcesses(y: number): string[] {
  const size = { width: 210, height: 84 };
  const xOf = (index: number): number => 24 + index * 234;
  const boxes = processes.map(([title, lines], index) =>
    drawBox({ x: xOf(index), y, ...size, title, lines, kind: index === 0 ? undefined : 'apart' }),
  );
  const arrows = processes.flatMap(([, , parent], index) => {
    if (parent === undefined) return [];
    const [from, to] = [xOf(parent) + size.width, xOf(index)];
    if (index === parent + 1) {
      return [drawArrow({ x: from, y: y + 24 }, { x: to, y: y + 24 })];
    }
    const [start, end] = [from - 20, to + 20];
    return [`<path d="M${start} ${y + size.height} v14 H${end} v-14"/>`];
  });
  const legend = drawText({ x: 24, y: y + 120 }, 'Arrows: starts. Dashed: separate processes.');
  return [...boxes, ...arrows, legend];
}

const secondsOf = (name: keyof typeof settingTable): string =>
  `${Number(settingTable[name].default) / 1000} s`;
const numberOf = (name: keyof typeof settingTable): string =>
  Number(settingTable[name].default).toLocaleString('en').replaceAll(',', ' ');

/** Stages at which a request may be rejected, in order: each with its limit, and the response above the limit. */
const stages: readonly (readonly [title: string, bound: string, refused: string])[] = [
  [
    'connection',
    `MAX_CONNECTIONS at once; a head within ${clientLimits.headTimeoutMs / 1000} s`,
    'closed; 408, 431',
  ],
  [
    'request',
    `${clientLimits.maxRequests} at once, or half of the connections`,
    '503; the connection stays open',
  ],
  ['signature and block', 'checked before every cache', '401, 404, 451'],
  ['hit in memory', 'never waits', ''],
  [
    'original',
    `${numberOf('ORIGIN_MAX_READS')} reads at once; first byte ${secondsOf('ORIGIN_FIRST_BYTE_TIMEOUT_MS')}, complete ${secondsOf('ORIGIN_TIMEOUT_MS')}`,
    '503; 502, 504, or stale for a day',
  ],
  [
    'ranges of a video',
    `${Number(settingTable.VIDEO_MAX_READ_BYTES.default) / 2 ** 20} MiB and 64 reads for a poster`,
    '422',
  ],
  ['memory for originals', 'a budget in bytes, half of it for heavy renders', '503'],
  ['rate of the client', 'RATE_LIMIT_REQUESTS, by estimated cost', '429'],
  ['costly renders', 'half of the heavy slots, in front of their lane', '503'],
  [
    'lane: light or heavy',
    `${numberOf('QUEUE_PER_WORKER')} waiting for each slot; an estimated wait of ${Number(settingTable.QUEUE_TIMEOUT_MS.default) / 2000} s`,
    '503 with Retry-After',
  ],
  [
    'slot and its process',
    `killed at ${secondsOf('TRANSFORM_TIMEOUT_MS')}, with its video decoder; retried once if lost`,
    '504; 422',
  ],
  ['response', 'as fast as the client reads, at least 64 KiB a minute', 'closed'],
];

const STAGE_HEIGHT = 62;

/** Draws the stages that a request passes, each with its limit. */
export function drawUnderLoad(): string {
  const parts = stages.flatMap(([title, bound, refused], index) => {
    const y = 20 + index * STAGE_HEIGHT;
    const isLast = index === stages.length - 1;
    return [
      `<rect x="24" y="${y}" width="580" height="48" rx="6"/>`,
      drawText({ x: 36, y: y + 29 }, title, 'title'),
      drawText({ x: 210, y: y + 29 }, bound),
      ...(isLast ? [] : [drawArrow({ x: 90, y: y + 48 }, { x: 90, y: y + STAGE_HEIGHT })]),
      ...(refused === ''
        ? []
        : [
            drawArrow({ x: 604, y: y + 24 }, { x: 660, y: y + 24 }),
            drawText({ x: 670, y: y + 29 }, refused, 'refused'),
          ]),
    ];
  });
  const height = 20 + stages.length * STAGE_HEIGHT;
  return drawSvg(920, height, 'Stages of a request under load, and the limit of each', parts);
}
