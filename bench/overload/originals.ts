import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drawAnimation, drawAvatar, PHOTOS } from '../harness/draw-originals.ts';
import { Random } from '../harness/random.ts';

/** Avatars as people upload them: squares of a few sizes and formats. */
const LIGHT_EDGES_PX = [256, 512, 768, 1024];
const LIGHT_FORMATS = ['jpeg', 'png', 'webp'] as const;
const LIGHT_WIDTHS_PX = [64, 80, 96, 100, 128];

const ANIMATIONS = [
  { format: 'gif', edgePx: 200, frames: 16 },
  { format: 'gif', edgePx: 320, frames: 24 },
  { format: 'webp', edgePx: 320, frames: 24 },
  { format: 'webp', edgePx: 480, frames: 40 },
] as const;
const HEAVY_WIDTHS_PX = [128, 160, 240, 256, 300];

/** A folder of originals, and the requests that there are for it, each of them for another result. */
export interface OverloadOriginals {
  readonly folder: string;
  /** Light renders: an avatar as a small WebP. */
  readonly lightPaths: readonly string[];
  /** Heavy renders: an animation as an animated WebP. */
  readonly heavyPaths: readonly string[];
  /** Sizes of the animated originals, in bytes. */
  readonly animationBytes: readonly number[];
  readonly remove: () => Promise<void>;
}

/**
 * Makes a folder of originals. Each is there under many ids, as links to one file: to the service they
 * are originals like any other.
 */
export async function makeOriginals(
  lightCount: number,
  heavyCount: number,
): Promise<OverloadOriginals> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-overload-'));
  const light = await Promise.all(
    LIGHT_EDGES_PX.flatMap((edgePx) =>
      LIGHT_FORMATS.flatMap((format) => PHOTOS.map((photo) => drawAvatar(photo, edgePx, format))),
    ),
  );
  const heavy = await Promise.all(
    ANIMATIONS.flatMap((animation) => PHOTOS.map((photo) => drawAnimation(photo, animation))),
  );
  const random = new Random(1);
  const lightIds = Math.ceil(lightCount / LIGHT_WIDTHS_PX.length);
  const heavyIds = Math.ceil(heavyCount / HEAVY_WIDTHS_PX.length);
  await spread(folder, 'avatars', light, lightIds);
  await spread(folder, 'stickers', heavy, heavyIds);
  return {
    folder,
    lightPaths: random.shuffle(
      listTargets(lightIds, LIGHT_WIDTHS_PX, (id) => `/avatars/${id}/face.webp`),
    ),
    heavyPaths: random.shuffle(
      listTargets(heavyIds, HEAVY_WIDTHS_PX, (id) => `/stickers/${id}.webp`).map(
        (path) => `${path}&quality=high`,
      ),
    ),
    animationBytes: heavy.map(({ length }) => length),
    remove: () => rm(folder, { recursive: true }),
  };
}

function listTargets(
  ids: number,
  widthsPx: readonly number[],
  pathOf: (id: number) => string,
): string[] {
  return Array.from({ length: ids }, (_, id) =>
    widthsPx.map((width) => `${pathOf(id)}?size=${width}`),
  ).flat();
}

/** Puts images under ids from 0 up, in turn. */
async function spread(
  folder: string,
  kind: 'avatars' | 'stickers',
  images: readonly Buffer[],
  ids: number,
): Promise<void> {
  await mkdir(join(folder, kind));
  for (const [index, bytes] of images.entries()) {
    const source = join(folder, `${kind}-${index}`);
    await writeFile(source, bytes);
    for (let id = index; id < ids; id += images.length) {
      if (kind === 'avatars') await mkdir(join(folder, kind, String(id)));
      await link(source, join(folder, kind, kind === 'avatars' ? `${id}/face` : String(id)));
    }
  }
}
