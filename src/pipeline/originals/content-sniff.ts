import { ByteReader, hasAscii } from '../../formats/byte-reader.ts';
import { sniffHeifType } from '../../formats/heif/heif-header.ts';
import { readIsoIndex } from '../../formats/video/iso-index.ts';

/** First bytes that determine the type: the sample size of `file-type`. */
export const SNIFF_BYTES = 4100;

const UNKNOWN = 'application/octet-stream';

type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/** Signatures of text formats; other text is `text/plain`. */
const textFormats: readonly (readonly [RegExp, string])[] = [
  [/^%PDF-/, 'application/pdf'],
  [/^%!PS/, 'application/postscript'],
  [/^\{\\rtf/, 'application/rtf'],
  [/^GIF8[79]a/, 'image/gif'], // a script after a header is a broken picture, not text
  [/^BEGIN:VCARD\s/, 'text/vcard'],
  [/^BEGIN:VCALENDAR\s/, 'text/calendar'],
  [/^WEBVTT(?:\s|$)/, 'text/vtt'],
];

/**
 * Returns the `Content-Type` of a file by its first `SNIFF_BYTES` bytes and nothing else (contract §4). Never throws;
 * unknown files are `application/octet-stream`.
 *
 * Safety depends on the order: first markup, regardless of what follows it; then text (UTF-8, or UTF-16 with a byte
 * order mark) without binary control characters; then the signatures of `file-type`, which take some prose for a video
 * (`The wide …` is a QuickTime atom). Scripts and JSON are `text/plain`; text in legacy encodings is unknown.
 *
 * Markup after a binary signature has the type of the signature (a GIF with HTML appended is `image/gif`), which is
 * safe with `nosniff`.
 */
export async function sniffContentType(prefix: Uint8Array): Promise<string> {
  const bytes = prefix.subarray(0, SNIFF_BYTES);
  const encoding = textEncodingOf(bytes);
  const markup = sniffMarkup(new TextDecoder(encoding).decode(bytes), encoding);
  if (markup !== undefined) return markup;

  const text = decodeText(bytes, encoding);
  if (text !== undefined) {
    const format = textFormats.find(([signature]) => signature.test(text));
    return format?.[1] ?? `text/plain; charset=${encoding}`;
  }
  // After a byte order mark without text, `file-type` would detect MPEG audio in FF FE.
  return encoding === 'utf-8' ? sniffBinary(bytes) : UNKNOWN;
}

function textEncodingOf(bytes: Uint8Array): TextEncoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return 'utf-8';
}

// Tags of WHATWG MIME Sniffing §7.1, and other dangerous ones. The standard ends a tag at a space or `>`; parsers also
// end it at `/` and other white space.
const HTML_TAG =
  /^<(?:html|head|body|title|script|style|iframe|frameset|base|meta|link|h1|div|font|table|a|b|br|p|img|form|object|embed|math)(?=[\s/>]|$)/i;
const SVG_TAG = /^<(?:[\w.-]+:)?svg(?=[\s/>]|$)/i;
const DOCTYPE = /^<!doctype\s*(?:[\w.-]+:)?([\w.-]*)/i;

// Allowed before the root element. HTML ends comments also at `<!-->`, `<!--->` and `--!>`.
const MISC = /\s+|<\?.*?\?>|<!--(?:-?>|.*?--!?>)/sy;
const WHOLE_DOCTYPE = /^<!doctype[^[>]*(?:\[.*?\]\s*)?>/is;

function sniffMarkup(text: string, encoding: TextEncoding): string | undefined {
  const html = `text/html; charset=${encoding}`;
  const isXml = text.trimStart().startsWith('<?xml');
  const xml = isXml ? 'application/xml' : undefined;

  let root = skipMisc(text);
  const [doctype, doctypeName] = DOCTYPE.exec(root) ?? [];
  if (doctype !== undefined) {
    if (/^svg$/i.test(doctypeName ?? '')) return 'image/svg+xml';
    if (/^html/i.test(doctypeName ?? '')) return xml ?? html;
    root = skipMisc(root.replace(WHOLE_DOCTYPE, ''));
  }
  if (SVG_TAG.test(root)) return 'image/svg+xml';
  // Anything may follow a truncated comment.
  if (HTML_TAG.test(root) || root.startsWith('<!--')) return xml ?? html;
  return doctype === undefined ? xml : 'application/xml';
}

function skipMisc(text: string): string {
  let index = 0;
  do {
    MISC.lastIndex = index;
    index += MISC.exec(text)?.[0].length ?? 0;
  } while (MISC.lastIndex !== 0);
  return text.slice(index);
}

/** Returns `undefined` for empty or malformed text, or binary control characters. */
function decodeText(bytes: Uint8Array, encoding: TextEncoding): string | undefined {
  if (bytes.length === 0) return undefined;
  // A full prefix may end within a character; a complete file may not.
  const stream = bytes.length === SNIFF_BYTES;
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream });
    return Array.from(text).some(isBinary) ? undefined : text;
  } catch {
    return undefined;
  }
}

// "Binary data bytes" of WHATWG MIME Sniffing §3: C0 controls except tab, LF, FF, CR and ESC.
function isBinary(character: string): boolean {
  return character < ' ' && !'\t\n\f\r\u001b'.includes(character);
}

async function sniffBinary(bytes: Uint8Array): Promise<string> {
  // `file-type` would inflate it to search for a tar, and return gzip anyway.
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return 'application/gzip';
  // `file-type` checks only the major brand.
  const heifType = sniffHeifType(bytes);
  if (heifType !== undefined) return heifType;
  // Loaded on demand: loading takes a tenth of the start.
  const { fileTypeFromBuffer } = await import('file-type');
  try {
    const mime = (await fileTypeFromBuffer(bytes))?.mime ?? UNKNOWN;
    return mime === 'video/mp4' && hasOnlyAudio(bytes) ? 'audio/mp4' : mime;
  } catch {
    return UNKNOWN; // the parser failed on hostile bytes
  }
}

/** Whether an MP4 has only audio tracks; the brand of a fragmented MP4 does not reveal it. */
function hasOnlyAudio(bytes: Uint8Array): boolean {
  const reader = new ByteReader(bytes, 'ISO');
  try {
    for (let at = 0; at + 8 <= bytes.length; at += Math.max(8, reader.u32be(at))) {
      if (!hasAscii(bytes, at + 4, 'moov')) continue;
      const { tracks } = readIsoIndex(reader.slice(at + 8, at + reader.u32be(at)));
      return tracks.length > 0 && !tracks.some(({ isVideo }) => isVideo);
    }
  } catch {
    // The index is damaged or truncated.
  }
  return false;
}
