/**
 * Version of everything that decides which bytes a request gives: our transforms and the codecs below them. It goes
 * into every ETag; change it with any change of either (a test compares the codecs').
 */
export const PIPELINE_RELEASE = '7-sharp0.35.5-vips8.18.7';

/** Default effort of the WebP encoder: 0 to 6 (libwebp's `method`). */
export const DEFAULT_WEBP_EFFORT = 4;

/** Appends an effort other than the default to the release, since another effort gives other bytes. */
export function releaseWithEffort(webpEffort: number): string {
  return webpEffort === DEFAULT_WEBP_EFFORT
    ? PIPELINE_RELEASE
    : `${PIPELINE_RELEASE}-effort${webpEffort}`;
}
