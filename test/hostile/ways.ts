/** One way to ask for an original. */
export interface Way {
  readonly name: string;
  /** Path and query; `id` is a number that no other request of the run has. */
  readonly target: (id: number) => string;
}

const way = (name: string, target: Way['target']): Way => ({ name, target });

export const stillSmall = way('still, small', (id) => `/avatars/1/${id}.webp?size=64`);
export const animatedLossless = way(
  'animated, lossless',
  (id) => `/avatars/1/${id}.webp?size=480&animated=true&quality=lossless`,
);
export const losslessLarge = way(
  'animated, lossless, large',
  (id) => `/avatars/1/${id}.webp?size=4096&animated=true&quality=lossless`,
);
export const animatedSmall = way(
  'animated, small',
  (id) => `/avatars/1/${id}.webp?size=64&animated=true`,
);
export const gif = way('gif', (id) => `/avatars/1/${id}.gif?size=160`);
export const gifLarge = way('gif, large', (id) => `/avatars/1/${id}.gif?size=4096`);
export const jpeg = way('jpeg', (id) => `/avatars/1/${id}.jpg?size=4096`);
export const jpegLow = way('jpeg, low', (id) => `/avatars/1/${id}.jpg?size=4096&quality=low`);
export const png = way('png', (id) => `/avatars/1/${id}.png?size=240`);
export const pngLarge = way('png, large', (id) => `/avatars/1/${id}.png?size=4096`);
export const pngLow = way('png, low', (id) => `/avatars/1/${id}.png?size=128&quality=low`);
export const passthrough = way('passthrough', (id) => `/attachments/1/${id}/file`);
export const cropped = way(
  'cropped',
  (id) => `/attachments/1/${id}/file?width=100&height=40&format=webp`,
);
export const asItIs = way('own size', (id) => `/attachments/1/${id}/file?quality=low`);

export const poster = way('poster', (id) => `/attachments/1/${id}/clip.mp4?format=webp&width=64`);

/** Every way that leads through other code. */
export const everyWay = [
  stillSmall,
  animatedLossless,
  gif,
  jpeg,
  png,
  pngLow,
  passthrough,
  cropped,
  asItIs,
] as const;

/** Through every decoder and encoder, but never much to encode. */
export const smallWays = [
  stillSmall,
  animatedSmall,
  way(
    'animated, lossless, small',
    (id) => `/emojis/${id}.webp?size=32&animated=true&quality=lossless`,
  ),
  way('gif, small', (id) => `/icons/1/${id}.gif?size=32`),
  way('gif, low', (id) => `/icons/1/${id}.gif?size=24&quality=low`),
  way('jpeg, small', (id) => `/icons/1/${id}.jpg?size=48`),
  way('png, small', (id) => `/icons/1/${id}.png?size=20`),
  way('png, low', (id) => `/banners/1/${id}.png?size=40&quality=low`),
  way('cropped, small', (id) => `/attachments/1/${id}/file?width=20&height=30&format=jpeg`),
  way(
    'animated crop',
    (id) => `/attachments/1/${id}/file?width=30&height=20&format=gif&animated=true`,
  ),
  way('sticker', (id) => `/stickers/${id}.webp?size=60`),
  asItIs,
] as const;
