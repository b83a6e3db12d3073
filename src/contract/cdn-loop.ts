/** Token of this service in `CDN-Loop` (RFC 8586 §2), sent with each request to another site. */
export const CDN_TOKEN = 'darkroom';

// `cdn-info = cdn-id *( OWS ";" OWS parameter )`; a quoted value may hold a comma.
const CDN_INFO = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;

/**
 * Whether the `CDN-Loop` header of a request contains our token: a site that fetches its image from us would keep us
 * busy with ourselves.
 */
export function hasOwnToken(header: string): boolean {
  return Array.from(header.matchAll(CDN_INFO)).some(
    ([info]) => info.split(';', 1)[0]?.trim().toLowerCase() === CDN_TOKEN,
  );
}
