import { readFile, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { drawGif } from '../support/images/draw-gif.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** An original with expectations that do not depend on the service. */
export interface Original {
  readonly bytes: Buffer;
  /** Status of a transform. */
  readonly transformed: 200 | 415 | 422;
  /** Expectations for the unchanged attachment. */
  readonly contentType: string;
  readonly disposition: 'inline' | 'attachment';
  /** Error of unchanged external media. Omit for media that are sent. */
  readonly shown?: 415;
  /** Whether it was uploaded through the service, so that its date is unknown. */
  readonly isUploaded?: true;
  /** Headers of another site. */
  readonly ofSite?: { readonly hasValidator: boolean; readonly cacheControl: string };
}

/** Last-Modified of every original; responses omit the milliseconds. */
export const CHANGED_AT = new Date('2024-05-14T10:00:00.789Z');

/** A directory with originals of each kind, and a canary next to it. */
export type SurfaceStorage = Awaited<ReturnType<typeof createSurfaceStorage>>;

/** Detailed pictures that render in a few milliseconds. */
async function drawImages() {
  const [width, height] = [48, 32];
  const pixels = Buffer.from(Array.from({ length: width * height * 4 }, (_, i) => (i * 37) % 251));
  const image = sharp(pixels, { raw: { width, height, channels: 4 } });
  const frame = (shift: number) => ({
    widthPx: 20,
    pixels: Array.from({ length: 200 }, (_, index) => (index + shift) % 4),
    controls: [[0, 7 + shift, 0]] as const,
  });
  return {
    png: await image.clone().png().toBuffer(),
    jpeg: await image.clone().jpeg().toBuffer(),
    webp: await image.clone().webp().toBuffer(),
    gif: drawGif({
      ...{ widthPx: 20, heightPx: 10, indexBits: 2, repeats: 0 },
      frames: [0, 1, 2].map(frame),
    }),
  };
}

/** Creates and fills a directory until the end of the test or file. */
export async function createSurfaceStorage() {
  const { path: directory, put: write } = await useTemporaryDirectory();
  const root = join(directory, 'storage');
  const { png, jpeg, webp, gif } = await drawImages();
  const text = Buffer.from('Two households, both alike in dignity.\n'.repeat(40));
  const html = Buffer.from('<!doctype html><script>alert(1)</script>');
  const svg = Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
  );
  const noise = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index) % 256));
  const cut = png.subarray(0, png.length - 40);

  const originals = new Map<string, Original>();
  const put = (
    key: string,
    bytes: Buffer,
    transformed: Original['transformed'],
    contentType = '',
    disposition: Original['disposition'] = 'inline',
  ): void => {
    originals.set(key, { bytes, transformed, contentType, disposition });
  };
  put('avatars/1/ab12', png, 200);
  put('icons/18446744073709551615/A_-9', gif, 200);
  put('banners/2/b', jpeg, 200);
  put('splashes/3/c', webp, 200);
  put('embed-splashes/3/c', jpeg, 200);
  put('emojis/4', gif, 200);
  put('stickers/5', gif, 200);
  put('stickers/6', webp, 200);
  put('guilds/7/users/8/avatars/d', png, 200);
  put('guilds/7/users/8/banners/e', webp, 200);
  put('avatars/1/text', text, 415);
  put('icons/1/svg', svg, 415);
  put('emojis/9', cut, 422);
  const plain = 'text/plain; charset=utf-8';
  const attachment = (name: string): string => `attachments/1/2/${name}`;
  put(attachment('photo.png'), png, 200, 'image/png');
  put(attachment('wave.gif'), gif, 200, 'image/gif');
  put(attachment('no extension'), jpeg, 200, 'image/jpeg');
  put(attachment('cut.png'), cut, 422, 'image/png');
  put(attachment('romeo.txt'), text, 415, plain);
  put(attachment('.htaccess'), text, 415, plain);
  put(attachment('empty'), Buffer.alloc(0), 415, 'application/octet-stream', 'attachment');
  put(attachment('page.html'), html, 415, 'text/html; charset=utf-8', 'attachment');
  put(attachment('lies.png'), html, 415, 'text/html; charset=utf-8', 'attachment');
  put(attachment('script.js'), text, 415, plain, 'attachment');
  put(attachment('cat.svg'), svg, 415, 'image/svg+xml', 'attachment');
  put(attachment('noise.bin'), noise, 415, 'application/octet-stream', 'attachment');
  // Names that a careless parser misreads as paths, headers or queries.
  put(attachment('a"b;c=d, e.txt'), text, 415, plain);
  put(attachment('%2e%2e%2fcanary'), text, 415, plain);
  put(attachment('what?width=1&x#y'), text, 415, plain);
  put(attachment('🎉 naïve.png'), png, 200, 'image/png');
  put(attachment('\u202egnp.exe'), png, 200, 'image/png');
  put(attachment('..%00'), text, 415, plain);
  put(attachment('x'.repeat(255)), text, 415, plain);

  for (const [key, { bytes }] of originals) {
    await write(join('storage', key), bytes);
    await utimes(join(root, key), CHANGED_AT, CHANGED_AT);
  }
  for (const place of ['canary', 'storage2']) await write(place, 'CANARY: must never be seen');
  await symlink(join(directory, 'canary'), join(root, 'attachments/1/2/link'));
  await symlink('..', join(root, 'attachments/1/3'));
  await symlink(directory, join(root, 'banners/9'));
  return { root, originals };
}

/** Reads a default avatar by index. */
export function readDefaultAvatar(index: string): Promise<Buffer> {
  return readFile(new URL(`../../src/default-avatars/${index}.png`, import.meta.url));
}
