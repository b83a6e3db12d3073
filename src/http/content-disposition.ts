/** Content-Disposition: whether a browser shows or saves an attachment, and under which name (RFC 6266). */

import { outputFormats } from '../contract/image-formats.ts';
import type { MediaRequest } from '../contract/media-request.ts';

/** `inline`: the browser may show the body. `attachment`: the browser saves it. */
export type Disposition = 'inline' | 'attachment';

const STILL = 'a raster picture: a decoder reads it, nothing runs';
const UNDECODED = 'a raster picture few browsers decode: shown or saved, nothing runs';

/**
 * Media types that are shown inline, each with the reason why that is safe; browsers save all others. An allow-list,
 * since the next active type is not yet invented; `nosniff` keeps browsers to the type.
 */
export const inlineTypes = {
  'image/png': STILL,
  'image/apng': STILL,
  'image/jpeg': STILL,
  'image/gif': STILL,
  'image/webp': STILL,
  'image/avif': STILL,
  'image/bmp': STILL,
  'image/x-icon': STILL,
  'image/heic': UNDECODED,
  'image/heic-sequence': UNDECODED,
  'image/heif': UNDECODED,
  'image/heif-sequence': UNDECODED,
  'image/jxl': UNDECODED,
  'image/tiff': UNDECODED,
  'audio/*': 'sound: played by the browser or saved, nothing runs',
  'video/*': 'pictures and sound: played by the browser or saved, nothing runs',
  'text/plain': 'shown letter by letter: with nosniff, markup in it stays text',
} as const satisfies Record<string, string>;

/**
 * Extensions of text that some program runs. By its bytes, JavaScript or CSS is plain text like any other, so the name
 * counts; and some receivers trust the name above the Content-Type.
 */
const activeExtensions: ReadonlySet<string> = new Set([
  ...['html', 'htm', 'xhtml', 'xht', 'shtml', 'shtm', 'mht', 'mhtml', 'hta', 'htc'], // markup
  ...['svg', 'svgz', 'xml', 'xsl', 'xslt', 'xul', 'rdf'], // XML that browsers interpret
  ...['js', 'mjs', 'cjs', 'jsx', 'css'], // parts of a page
  ...['php', 'phtml', 'phar', 'asp', 'aspx', 'jsp', 'cgi'], // run by a web server
  ...['jse', 'vbs', 'vbe', 'wsf', 'wsh', 'ps1', 'bat', 'cmd', 'reg', 'url', 'scf', 'inf'], // Windows
  ...['command', 'desktop', 'webloc'], // macOS and Linux, by a click
]);

/**
 * Returns whether a browser shows or saves a body (contract §4). The name can only turn plain text into an attachment,
 * never anything into inline.
 *
 * @param contentType the `Content-Type` from its bytes, parameters allowed
 */
export function dispositionOf(contentType: string, filename: string): Disposition {
  const [essence = ''] = contentType.toLowerCase().split(';');
  const type = essence.trim();
  const isInline =
    Object.hasOwn(inlineTypes, type) || Object.hasOwn(inlineTypes, type.replace(/\/.*/s, '/*'));
  if (!isInline) return 'attachment';
  return type === 'text/plain' && activeExtensions.has(extensionOf(filename))
    ? 'attachment'
    : 'inline';
}

function extensionOf(filename: string): string {
  const shown = displayName(filename);
  // Windows drops dots and spaces at the end of a name: `a.html.` is saved as `a.html`. Counted from
  // the end: `/[\s.]+$/` takes quadratic time on a name full of dots.
  let end = shown.length;
  while (end > 0 && /[\s.]/.test(shown.charAt(end - 1))) end -= 1;
  const name = shown.slice(0, end);
  return /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? '';
}

/**
 * Formats the `Content-Disposition` header (RFC 6266 §4) for a file of any name: the name as ASCII in `filename`, and in
 * full as UTF-8 in `filename*` (RFC 8187) where ASCII cannot express it. The result has visible ASCII and spaces only.
 *
 * Control characters are dropped, as are the bidi controls that make `gpj.exe` read `exe.jpg`; lone surrogates become
 * U+FFFD. A name with nothing left becomes `download`.
 */
export function formatContentDisposition(disposition: Disposition, filename: string): string {
  const name = displayName(filename) || 'download';
  const fallback = asciiFallback(name);
  const quoted = `${disposition}; filename="${fallback.replace(/["\\]/g, '\\$&')}"`;
  return fallback === name ? quoted : `${quoted}; filename*=UTF-8''${encodeExtValue(name)}`;
}

function displayName(filename: string): string {
  return filename
    .replace(/\p{Surrogate}/gu, '\uFFFD') // toWellFormed() of ES2024: with `u`, only lone ones match
    .replace(/[\p{Control}\u202A-\u202E\u2066-\u2069]/gu, '');
}

/**
 * Returns the nearest name in ASCII: without accents, any other character `_`. `%41` (RFC 6266 appendix D) and `=?` of RFC
 * 2047 are replaced as well, since some browsers decode them in `filename` although they must not.
 */
function asciiFallback(name: string): string {
  return name
    .replace(/[\u037E\u1FEF]/g, '_') // NFC makes `;` and a backtick of them
    .normalize('NFC')
    .replace(/[^ -~]/gu, (character) => {
      const base = character.normalize('NFD').charAt(0);
      // Letters alone: the base of U+2260 is `=`, and of others a sign with a meaning in paths.
      return /[A-Za-z]/.test(base) ? base : '_';
    })
    .replace(/%(?=[\dA-Fa-f]{2})/g, '_')
    .replace(/=\?/g, '=_');
}

/** Percent-encodes UTF-8; `encodeURIComponent` leaves four characters that attr-char does not have (RFC 8187). */
function encodeExtValue(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * Formats the `Content-Disposition` of the response to a request: attachments have a name to be shown or saved under, assets
 * have none, and other files only have one if a browser must not show their bytes. A transformed attachment is named after
 * what it became: a `photo.png` that is a WebP now is saved as `photo.webp`.
 *
 * @param isDownload whether the request asks for a body to be saved
 */
export function formatMediaDisposition(
  { resource, filename, isPassthrough }: MediaRequest,
  contentType: string,
  isDownload = false,
): string | undefined {
  if (filename === undefined) return isDownload ? 'attachment' : undefined;
  const name = isPassthrough ? filename : rename(filename, contentType);
  const disposition = isDownload ? 'attachment' : dispositionOf(contentType, name);
  if (resource !== 'attachment' && disposition === 'inline') return undefined;
  return formatContentDisposition(disposition, name);
}

function rename(filename: string, mimeType: string): string {
  const format = Object.values(outputFormats).find((row) => row.mimeType === mimeType);
  if (format === undefined) return filename;
  const { stem = filename, extension = '' } =
    /^(?<stem>.+)\.(?<extension>[a-z][a-z0-9]{1,4}|3g[p2])$/isu.exec(filename)?.groups ?? {};
  return format.extensions.some((known) => known === extension.toLowerCase())
    ? filename
    : `${stem}.${format.extensions[0]}`;
}
