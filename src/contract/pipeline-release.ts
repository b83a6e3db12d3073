/**
 * Names everything that decides which bytes a request gives: our transforms and the codecs below
 * them. It goes into every ETag; change it with any change of either (a test compares the codecs').
 */
export const PIPELINE_RELEASE = '4-sharp0.35.5-vips8.18.7';
