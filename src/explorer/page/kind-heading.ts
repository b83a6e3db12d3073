/** Kinds that are called something shorter, or else, where there are many of them. */
const HEADINGS: Readonly<Record<string, string>> = {
  'user avatar': 'Avatars',
  'guild icon': 'Icons',
  'guild banner': 'Banners',
  'guild splash': 'Splashes',
  'guild embed splash': 'Embed splashes',
  'custom emoji': 'Emojis',
  'member avatar': 'Members’ avatars',
  'member banner': 'Members’ banners',
};

/** What stands above the originals of a kind: its name in the plural, unless it has a heading of its own. */
export function formatHeading(kind: string): string {
  const plural = /(?:s|x|z|ch|sh)$/.test(kind) ? `${kind}es` : `${kind}s`;
  return HEADINGS[kind] ?? plural.slice(0, 1).toUpperCase() + plural.slice(1);
}
