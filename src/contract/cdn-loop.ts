/** Our name in `CDN-Loop` (RFC 8586 §2): it goes with each request to another site. */
export const CDN_TOKEN = 'darkroom';

// `cdn-info = cdn-id *( OWS ";" OWS parameter )`; a quoted value may hold a comma.
const CDN_INFO = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;

/**
 * Whether a request has come through us before, by its `CDN-Loop` header: a picture whose site asks us for it would
 * keep us busy with ourselves.
 */
export function hasOwnToken(header: string): boolean {
  return Array.from(header.matchAll(CDN_INFO)).some(
    ([info]) => info.split(';', 1)[0]?.trim().toLowerCase() === CDN_TOKEN,
  );
}
