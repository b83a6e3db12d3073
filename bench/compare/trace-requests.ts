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

/** Originals of the fixtures by kind; a splash moves in no trace. */
const fixtureKeys: Readonly<Record<ContentKind, readonly string[]>> = {
  'user avatar': [
    'avatars/1471234567890123456/0123456789abcdef0123456789abcdef',
    'avatars/1471234567890123456/fedcba9876543210fedcba9876543210',
    'avatars/1/ab12',
    'avatars/2/cd34',
    'avatars/3/ef56',
    'avatars/6/kl12',
    'avatars/7/mn34',
    'avatars/9/qr78',
  ],
  'member avatar': [
    'guilds/1472222222222222223/users/1471234567890123456/avatars/0123456789abcdef0123456789abcdef',
    'guilds/1/users/1/avatars/ab12',
    'guilds/1/users/2/avatars/cd34',
  ],
  'guild icon': [
    'icons/1472222222222222223/0123456789abcdef0123456789abcdef',
    'icons/1472222222222222223/fedcba9876543210fedcba9876543210',
    'icons/1/ab12',
    'icons/2/cd34',
  ],
  'guild banner': [
    'banners/1472222222222222223/0123456789abcdef0123456789abcdef',
    'banners/1471234567890123456/fedcba9876543210fedcba9876543210',
    'banners/1/ab12',
    'banners/3/ef56',
  ],
  'guild splash': [
    'splashes/1472222222222222223/0123456789abcdef0123456789abcdef',
    'splashes/1/ab12',
    'splashes/3/ef56',
  ],
  'custom emoji': ['1473333333333333334', '1', '2', '3', '5', '9', '10', '11'].map(
    (id) => `emojis/${id}`,
  ),
  sticker: ['1474444444444444445', '1', '2', '4'].map((id) => `stickers/${id}`),
  attachment: ['1/country-lane.jpg', '2/waterfall.jpg', '12/red-panda.jpg', '6/moon.gif'].map(
    (name) => `attachments/1/${name}`,
  ),
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
    const fixture = fixtureKeys[kind][turn % fixtureKeys[kind].length] ?? '';
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
  if (parsed.kind !== 'media' || parsed.request.isVerbatim) return undefined;
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
