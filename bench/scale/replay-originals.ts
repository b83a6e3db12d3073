import { copyFileSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseTarget } from '../../src/contract/media-request.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import type { TracedOriginal } from '../trace/catalogue.ts';
import type { ContentKind, Shape } from '../trace/shapes.ts';
import { formatTarget } from '../trace/targets.ts';
import type { Trace } from '../trace/trace.ts';
import { variants } from '../trace/usages.ts';

const FIXTURES = 'fixtures/originals';

/**
 * Originals of the fixtures by kind. None is an AVIF, whose bytes the table does not know; a splash moves
 * in no trace.
 */
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

/** A trace whose originals are fixtures, and the folder where a service finds them. */
export interface ReplayOriginals {
  /** The same requests; shapes are the fixtures', nothing is deleted, and no picture is special. */
  readonly trace: Trace;
  readonly folder: string;
  /** Request target of each rendering. */
  readonly targets: readonly string[];
  readonly remove: () => void;
}

/** Puts a fixture of the same kind behind every original of a trace, as a link to one file. */
export function layOutOriginals(trace: Trace): ReplayOriginals {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-replay-'));
  const used = new Map<ContentKind, number>();
  const originals = trace.catalogue.originals.map((original, index): TracedOriginal => {
    const { kind, createdS } = original;
    const keys = fixtureKeys[kind];
    const turn = used.get(kind) ?? 0;
    used.set(kind, turn + 1);
    const key = keys[turn % keys.length] ?? '';
    const shape = readShape(join(FIXTURES, key));
    const target = parseTarget(formatTarget(kind, shape, index, askOf(kind)));
    if (target.kind === 'media') link(folder, key, target.request.originKey);
    return { kind, shape, detail: 1, createdS, deletedS: Number.POSITIVE_INFINITY };
  });
  const targets = trace.catalogue.renderings.map(({ original, variant }) => {
    const traced = originals[original];
    if (traced === undefined) throw new Error(`There is no original ${original}.`);
    return formatTarget(traced.kind, traced.shape, original, variants[variant]?.ask ?? '');
  });
  const { renderings } = trace.catalogue;
  return {
    trace: { ...trace, catalogue: { originals, renderings }, deletions: [] },
    folder,
    targets,
    remove: () => rmSync(folder, { recursive: true }),
  };
}

const shapes = new Map<string, Shape>();

/** One object per fixture: whoever works out what a shape takes does so once. */
function readShape(path: string): Shape {
  const known = shapes.get(path);
  if (known !== undefined) return known;
  const facts = readImageFacts(readFileSync(path));
  if (facts === undefined) throw new Error(`${path} is no image.`);
  const { format, widthPx, heightPx, frames, isClean, orientation } = facts;
  const isTurned = orientation >= 5;
  const shape: Shape = {
    format,
    widthPx: isTurned ? heightPx : widthPx,
    heightPx: isTurned ? widthPx : heightPx,
    frames,
    isClean,
    weight: 1,
  };
  shapes.set(path, shape);
  return shape;
}

/** Any variant: all of a kind have one original's key. */
function askOf(kind: ContentKind): string {
  return variants.find((variant) => variant.kind === kind)?.ask ?? '';
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
