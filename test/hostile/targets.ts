/** Returns the target of a request for an original; `id` is unique in a run. */
export type MakeTarget = (id: number) => string;

export const stillSmall: MakeTarget = (id) => `/avatars/1/${id}.webp?size=64`;
export const animatedLossless: MakeTarget = (id) =>
  `/avatars/1/${id}.webp?size=480&animated=true&quality=lossless`;
export const losslessLarge: MakeTarget = (id) =>
  `/avatars/1/${id}.webp?size=4096&animated=true&quality=lossless`;
export const animatedSmall: MakeTarget = (id) => `/avatars/1/${id}.webp?size=64&animated=true`;
export const gif: MakeTarget = (id) => `/avatars/1/${id}.gif?size=160`;
export const gifLarge: MakeTarget = (id) => `/avatars/1/${id}.gif?size=4096`;
export const jpeg: MakeTarget = (id) => `/avatars/1/${id}.jpg?size=4096`;
export const jpegLow: MakeTarget = (id) => `/avatars/1/${id}.jpg?size=4096&quality=low`;
export const png: MakeTarget = (id) => `/avatars/1/${id}.png?size=240`;
export const pngLarge: MakeTarget = (id) => `/avatars/1/${id}.png?size=4096`;
export const pngLow: MakeTarget = (id) => `/avatars/1/${id}.png?size=128&quality=low`;
export const passthrough: MakeTarget = (id) => `/attachments/1/${id}/file`;
export const cropped: MakeTarget = (id) =>
  `/attachments/1/${id}/file?width=100&height=40&format=webp`;
export const lowQuality: MakeTarget = (id) => `/attachments/1/${id}/file?quality=low`;

export const poster: MakeTarget = (id) => `/attachments/1/${id}/clip.mp4?format=webp&width=64`;

/** Requests for a still of any size. */
export const stills = [stillSmall, jpeg] as const;
/** Requests for an animation, if the original is one. */
export const animations = [stillSmall, animatedSmall, gif, losslessLarge] as const;

/** Requests that together run all code. */
export const allTargets = [
  stillSmall,
  animatedLossless,
  gif,
  jpeg,
  png,
  pngLow,
  passthrough,
  cropped,
  lowQuality,
] as const;

/** Requests through every decoder and encoder, with small results. */
export const smallTargets: readonly MakeTarget[] = [
  stillSmall,
  animatedSmall,
  (id) => `/emojis/${id}.webp?size=32&animated=true&quality=lossless`,
  (id) => `/icons/1/${id}.gif?size=32`,
  (id) => `/icons/1/${id}.gif?size=24&quality=low`,
  (id) => `/icons/1/${id}.jpg?size=48`,
  (id) => `/icons/1/${id}.png?size=20`,
  (id) => `/banners/1/${id}.png?size=40&quality=low`,
  (id) => `/attachments/1/${id}/file?width=20&height=30&format=jpeg`,
  (id) => `/attachments/1/${id}/file?width=30&height=20&format=gif&animated=true`,
  (id) => `/stickers/${id}.webp?size=60`,
  lowQuality,
];
