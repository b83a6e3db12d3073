/**
 * Names everything that decides which bytes a request gives: our transforms and the codecs below
 * them. It goes into every ETag; change it with any change of either (a test compares the codecs').
 */
export const PIPELINE_RELEASE = '5-sharp0.35.5-vips8.18.7';

/** How hard the encoder of WebP tries, where nothing else is set: 0 to 6 (libwebp's `method`). */
export const DEFAULT_WEBP_EFFORT = 4;

/** The release with the effort that is set, since other effort gives other bytes; the default's is the release alone. */
export function releaseWithEffort(webpEffort: number): string {
  return webpEffort === DEFAULT_WEBP_EFFORT
    ? PIPELINE_RELEASE
    : `${PIPELINE_RELEASE}-effort${webpEffort}`;
}
