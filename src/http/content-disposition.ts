/** `Content-Disposition` (RFC 6266): whether browsers show or save an attachment, and its name. */

import { outputFormats } from '../contract/image-formats.ts';
import type { MediaRequest } from '../contract/media-request.ts';

/** `inline`: browsers may show the body. `attachment`: browsers save it. */
export type Disposition = 'inline' | 'attachment';

const STILL = 'raster image: decoded, never executed';
const UNDECODED = 'raster image that few browsers decode: shown or saved, never executed';

/**
 * Media types that browsers may show, each with the reason why that is safe. An allow-list, since new active types may
 * appear; `nosniff` makes browsers respect the type.
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
  'audio/*': 'audio: played by the browser or saved, never executed',
  'video/*': 'video: played by the browser or saved, never executed',
  'text/plain': 'shown as text: with nosniff, markup is not interpreted',
} as const satisfies Record<string, string>;

/** Extensions of text that programs execute: JavaScript and CSS are plain text by their bytes, so the name decides. */
const activeExtensions: ReadonlySet<string> = new Set([
  ...['html', 'htm', 'xhtml', 'xht', 'shtml', 'shtm', 'mht', 'mhtml', 'hta', 'htc'], // markup
  ...['svg', 'svgz', 'xml', 'xsl', 'xslt', 'xul', 'rdf'], // XML that browsers interpret
  ...['js', 'mjs', 'cjs', 'jsx', 'css'], // parts of a page
  ...['php', 'phtml', 'phar', 'asp', 'aspx', 'jsp', 'cgi'], // run by a web server
  ...['jse', 'vbs', 'vbe', 'wsf', 'wsh', 'ps1', 'bat', 'cmd', 'reg', 'url', 'scf', 'inf'], // Windows
  ...['command', 'desktop', 'webloc'], // macOS and Linux, by a click
]);

/**
 * Returns whether browsers show or save a body (contract §4). The name can restrict plain text to an attachment, but never
 * makes a body inline.
 *
 * @param contentType type detected from the bytes, with or without parameters
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
  // Windows drops final dots and spaces: it saves `a.html.` as `a.html`. A loop, since the regular expression `/[\s.]+$/`
  // takes quadratic time.
  let end = shown.length;
  while (end > 0 && /[\s.]/.test(shown.charAt(end - 1))) end -= 1;
  const name = shown.slice(0, end);
  return /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? '';
}

/**
 * Formats `Content-Disposition` (RFC 6266 §4): the name as ASCII in `filename`, and as UTF-8 in `filename*` (RFC 8187) if
 * it differs. Drops control characters, and the bidi controls that make `gpj.exe` look like `exe.jpg`; lone surrogates
 * become U+FFFD, an empty name `download`.
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
 * Returns the name in ASCII: without accents, other characters as `_`. Also replaces escapes such as `%41` (RFC 6266
 * appendix D) and `=?` (RFC 2047), which some browsers decode in `filename` although they must not.
 */
function asciiFallback(name: string): string {
  return name
    .replace(/[\u037E\u1FEF]/g, '_') // NFC converts them to `;` and a backtick
    .normalize('NFC')
    .replace(/[^ -~]/gu, (character) => {
      const base = character.normalize('NFD').charAt(0);
      // Letters only: the base of U+2260 is `=`, and other bases have a meaning in paths.
      return /[A-Za-z]/.test(base) ? base : '_';
    })
    .replace(/%(?=[\dA-Fa-f]{2})/g, '_')
    .replace(/=\?/g, '=_');
}

/** Percent-encodes UTF-8, with the four characters that `encodeURIComponent` leaves but attr-char lacks (RFC 8187). */
function encodeExtValue(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * Formats the `Content-Disposition` of a response: for attachments, downloads, and files that browsers must not show. The
 * extension follows the sent format: a `photo.png` sent as WebP is `photo.webp`.
 *
 * @param isDownload whether browsers save the body, regardless of its type
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
