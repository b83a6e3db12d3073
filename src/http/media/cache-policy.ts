/** How long a shared cache may keep each kind of answer (spec §4), in seconds. */
export interface MaxAgeSeconds {
  /** Media that was served. */
  readonly media: number;
  readonly defaultAvatar: number;
  /** 404. */
  readonly notFound: number;
  /** 400, 415 and 422: the same request will fail again. */
  readonly refused: number;
}

/** `Cache-Control` of media: its URL names one content for ever. */
export function mediaCacheControl({ media }: MaxAgeSeconds): string {
  return `public, max-age=${media}, immutable`;
}

/** `Cache-Control` of a default avatar. */
export function defaultAvatarCacheControl({ defaultAvatar }: MaxAgeSeconds): string {
  return `public, max-age=${defaultAvatar}`;
}

/** `Cache-Control` of an error; what may be different at the next try is not kept. */
export function errorCacheControl(status: number, { notFound, refused }: MaxAgeSeconds): string {
  switch (status) {
    case 404:
      return `public, max-age=${notFound}`;
    case 400:
    case 415:
    case 422:
      return `public, max-age=${refused}`;
    default:
      return 'no-store';
  }
}
