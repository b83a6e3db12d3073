import { inflateSync } from 'node:zlib';
import { ByteReader, hasAscii } from './byte-reader.ts';
import { readHeifColour } from './heif/heif-colour.ts';
import { openHeif } from './heif/heif-file.ts';
import { isHeif } from './heif/heif-header.ts';
import { isJpeg, jpegMarker, walkJpegSegments } from './jpeg/jpeg-segments.ts';
import { isPng, walkPngChunks } from './png/png-chunks.ts';
import { FIRST_CHUNK, isWebp, walkRiffChunks } from './webp/riff-chunks.ts';

/** Beginning of a JPEG segment with a part of a profile (ICC.1:2022 §B.4). */
const JPEG_NAME = 'ICC_PROFILE\0';
/** Follows the name: the number of the part and the count of parts. */
const JPEG_PART_BYTES = 2;

/** Larger than profiles of cameras and screens; those of printers may be larger still, but have their names first. */
const MAX_PROFILE_BYTES = 2 ** 20;

const HEADER_BYTES = 128;
/** An entry of the table of tags: signature, offset, size. */
const ENTRY_BYTES = 12;
const MAX_TAGS = 100;
/** Longest name that is returned, in characters. */
const MAX_NAME_LENGTH = 80;

/**
 * Returns the name of an image's colour profile, for people to read: no conversion depends on the name.
 *
 * @param bytes of a file whose header was read without a fault
 * @returns `undefined` without a profile; the empty text if its name cannot be read
 */
export function readProfileName(bytes: Uint8Array): string | undefined {
  try {
    const profile = findProfile(bytes);
    return profile && readDescription(new ByteReader(profile, 'ICC profile'));
  } catch {
    return '';
  }
}

/** Returns the profile, or enough of it to read its name. */
function findProfile(bytes: Uint8Array): Uint8Array | undefined {
  if (isJpeg(bytes)) {
    for (const { code, start, end } of walkJpegSegments(bytes)) {
      const from = start + 2;
      if (code === jpegMarker.app0 + 2 && hasAscii(bytes, from, JPEG_NAME)) {
        return bytes.subarray(from + JPEG_NAME.length + JPEG_PART_BYTES, end);
      }
    }
  } else if (isPng(bytes)) {
    for (const { type, start, end } of walkPngChunks(bytes)) {
      if (type === 'iCCP') return inflateProfile(bytes.subarray(start, end));
      if (type === 'IDAT') break;
    }
  } else if (isWebp(bytes)) {
    for (const { fourCc, start, end } of walkRiffChunks(bytes, FIRST_CHUNK)) {
      if (fourCc === 'ICCP') return bytes.subarray(start, end);
    }
  } else if (isHeif(bytes)) {
    const heif = openHeif(bytes);
    return heif && readHeifColour(heif).profile;
  }
  return undefined;
}

/** Inflates the profile of an iCCP chunk: a name, a zero, the method, and a zlib stream (PNG 3rd edition §11.3.2.3). */
function inflateProfile(payload: Uint8Array): Uint8Array {
  try {
    const compressed = payload.subarray(payload.indexOf(0) + 2);
    return inflateSync(compressed, { maxOutputLength: MAX_PROFILE_BYTES });
  } catch {
    return new Uint8Array();
  }
}

/** Reads the tag `desc`, of version 4 (`mluc`, first language) or 2 (ICC.1:2022 §10.15; ICC.1:2001-04 §6.5.17). */
function readDescription(profile: ByteReader): string {
  const tags = Math.min(profile.u32be(HEADER_BYTES), MAX_TAGS);
  for (let tag = 0; tag < tags; tag += 1) {
    const entry = HEADER_BYTES + 4 + tag * ENTRY_BYTES;
    if (profile.tag(entry) !== 'desc') continue;
    const start = profile.u32be(entry + 4);
    if (profile.tag(start) === 'mluc') {
      const text = start + profile.u32be(start + 24);
      const length = Math.min(profile.u32be(start + 20), 2 * MAX_NAME_LENGTH);
      return clean(new TextDecoder('utf-16be').decode(profile.slice(text, text + length)));
    }
    const length = Math.min(profile.u32be(start + 8), MAX_NAME_LENGTH);
    return clean(new TextDecoder('latin1').decode(profile.slice(start + 12, start + 12 + length)));
  }
  return '';
}

function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '').trim();
}
