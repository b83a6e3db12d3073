import type { ContentKind, Shape } from './shapes.ts';

/** Ids of a trace begin here, so that they have as many digits as those of the platform. */
const FIRST_ID = 1_471_000_000_000_000_000n;

/** Folder of each kind, and whether an id stands before the hash; contract §1. */
const pathForms: Readonly<Record<ContentKind, (id: string, hash: string) => string>> = {
  'user avatar': (id, hash) => `/avatars/${id}/${hash}`,
  'member avatar': (id, hash) => `/guilds/${id}/users/${id}/avatars/${hash}`,
  'guild icon': (id, hash) => `/icons/${id}/${hash}`,
  'guild banner': (id, hash) => `/banners/${id}/${hash}`,
  'guild splash': (id, hash) => `/splashes/${id}/${hash}`,
  'custom emoji': (id) => `/emojis/${id}`,
  sticker: (id) => `/stickers/${id}`,
  attachment: (id, hash) => `/attachments/${id}/${id}/${hash}`,
};

/**
 * The request target of a rendering.
 *
 * @param original number of the original, which its id is made from
 * @param ask what follows the hash or id: `.webp?size=80`
 */
export function formatTarget(
  kind: ContentKind,
  shape: Pick<Shape, 'frames'>,
  original: number,
  ask: string,
): string {
  const id = String(FIRST_ID + BigInt(original));
  const digits = original.toString(16).padStart(32, '0');
  const isHashed = kind !== 'attachment';
  const name = isHashed ? `${shape.frames > 1 ? 'a_' : ''}${digits}` : `image-${original}`;
  return pathForms[kind](id, name) + ask;
}
