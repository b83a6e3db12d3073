import { copyFileSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type MediaRequest, parseTarget } from '../../src/contract/media-request.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import type { ContentKind } from '../trace/shapes.ts';
import { formatTarget } from '../trace/targets.ts';
import { generateTrace, type Trace, type TraceOptions } from '../trace/trace.ts';
import { variants } from '../trace/usages.ts';

const FIXTURES = 'fixtures/originals';

const [MAIN, OTHER] = ['0123456789abcdef0123456789abcdef', 'fedcba9876543210fedcba9876543210'];
const [USER, GUILD] = ['1471234567890123456', '1472222222222222223'];

/** Originals of the fixtures by kind: the folder, and what is below it. A splash moves in no trace. */
const fixtures: Readonly<Record<ContentKind, readonly [folder: string, keys: string]>> = {
  'user avatar': [
    'avatars',
    `${USER}/${MAIN} ${USER}/${OTHER} 1/ab12 2/cd34 3/ef56 6/kl12 7/mn34 9/qr78`,
  ],
  'member avatar': [
    'guilds',
    `${GUILD}/users/${USER}/avatars/${MAIN} 1/users/1/avatars/ab12 1/users/2/avatars/cd34`,
  ],
  'guild icon': ['icons', `${GUILD}/${MAIN} ${GUILD}/${OTHER} 1/ab12 2/cd34`],
  'guild banner': ['banners', `${GUILD}/${MAIN} ${USER}/${MAIN} 1/ab12 3/ef56`],
  'guild splash': ['splashes', `${GUILD}/${MAIN} 1/ab12 3/ef56`],
  'custom emoji': ['emojis', '1473333333333333334 1 2 3 5 9 10 11'],
  sticker: ['stickers', '1474444444444444445 1 2 4'],
  attachment: ['attachments/1', '1/country-lane.jpg 2/waterfall.jpg 12/red-panda.jpg 6/moon.gif'],
};

/** One request of a trace, in the words of both. */
export interface TraceRequest {
  readonly darkroom: string;
  readonly ipx: string;
}

/** A trace that two services can be sent, and the folder of its originals. */
export interface TraceRequests {
  readonly folder: string;
  readonly requests: readonly TraceRequest[];
  /** Different ones among them. */
  readonly renderings: number;
  readonly remove: () => void;
}

/**
 * Generates a trace whose originals are fixtures. What was made equal: stickers are asked for with
 * quality 80, since IPX has no lossless; attachments that are served byte for byte are left out, since IPX
 * would encode them anew, and those who use it have their proxy fetch them from the bucket.
 *
 * What could not be: IPX neither keeps GIF delays exactly nor passes an unchanged original through, and looks for
 * its `Last-Modified` with a request of its own.
 *
 * @param options `requests`: with the attachments that are left out
 */
export function createTraceRequests(options: TraceOptions): TraceRequests {
  const trace = generateTrace(options);
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-trace-'));
  const targets = layOutFixtures(trace, folder);
  const requests = [...trace.renderings].flatMap(
    (rendering) => translate(targets[rendering] ?? '') ?? [],
  );
  const renderings = new Set(requests.map(({ darkroom }) => darkroom)).size;
  return { folder, requests, renderings, remove: () => rmSync(folder, { recursive: true }) };
}

/**
 * Puts a fixture of the same kind behind every original of a trace, as a link to one file.
 *
 * @returns the request target of each rendering
 */
function layOutFixtures({ catalogue }: Trace, folder: string): string[] {
  const used = new Map<ContentKind, number>();
  const framesOf = catalogue.originals.map(({ kind }, index) => {
    const turn = used.get(kind) ?? 0;
    used.set(kind, turn + 1);
    const [parent, list] = fixtures[kind];
    const keys = list.split(' ');
    const fixture = `${parent}/${keys[turn % keys.length]}`;
    const frames = readFrames(fixture);
    // Any variant: all of a kind have one original's key.
    const ask = variants.find((variant) => variant.kind === kind)?.ask ?? '';
    const target = parseTarget(formatTarget(kind, { frames }, index, ask));
    if (target.kind === 'media') link(folder, fixture, target.request.originKey);
    return frames;
  });
  return catalogue.renderings.map(({ original, variant }) => {
    const kind = catalogue.originals[original]?.kind ?? 'attachment';
    const frames = framesOf[original] ?? 1;
    return formatTarget(kind, { frames }, original, variants[variant]?.ask ?? '');
  });
}

const knownFrames = new Map<string, number>();

function readFrames(fixture: string): number {
  const frames =
    knownFrames.get(fixture) ?? readImageFacts(readFileSync(join(FIXTURES, fixture)))?.frames;
  if (frames === undefined) throw new Error(`${fixture} is no image.`);
  knownFrames.set(fixture, frames);
  return frames;
}

function link(folder: string, fixture: string, key: string): void {
  const source = join(folder, '.fixtures', fixture);
  const target = join(folder, key);
  for (const path of [source, target]) mkdirSync(dirname(path), { recursive: true });
  // Once copied, links suffice; a folder for temporary files may be another file system.
  try {
    copyFileSync(join(FIXTURES, fixture), source, 1);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  linkSync(source, target);
}

/** Both ways to ask; `undefined` for what is no rendering. */
export function translate(target: string): TraceRequest | undefined {
  const isSticker = target.startsWith('/stickers/');
  const darkroom = isSticker ? `${target}${target.includes('?') ? '&' : '?'}quality=high` : target;
  const parsed = parseTarget(darkroom);
  if (parsed.kind !== 'media' || parsed.request.isPassthrough) return undefined;
  return { darkroom, ipx: `/${formatModifiers(parsed.request)}/${parsed.request.originKey}` };
}

/** A height is asked for in no trace. */
function formatModifiers({ widthPx, format, isAnimated }: MediaRequest): string {
  const modifiers = [
    ...(widthPx === undefined ? [] : [`w_${widthPx}`]),
    ...(format === undefined ? [] : [`f_${format}`]),
    ...(isAnimated ? ['animated'] : []),
  ];
  return modifiers.join(',') || '_';
}
