import { SNIFF_BYTES } from '../../../src/pipeline/originals/content-sniff.ts';
import { corpusFile } from '../../formats/facts-of.ts';

/** A Content-Type that can go into a header as it is. */
export const MEDIA_TYPE = /^[a-z]+\/[\w.+-]+(?:; (?:charset=utf-(?:8|16le|16be)|codecs=opus))?$/;

/** Beginnings, in Latin-1, of everything that file-type walks through rather than looks at. */
export const WALKED_HEADS = [
  'PK\x03\x04',
  '\x1aE\xdf\xa3',
  'ID3\x03\0\0\0\0\0\x05',
  'OggS',
  'II*\0',
  'MM\0*',
  '!<arch>',
  '\x89PNG\r\n\x1a\n',
  '\0\0\0\x18ftyp',
  'RIFF\0\0\0\0',
  '\xff\xfb',
  '\xef\xbb\xbf\xef\xbb\xbf',
  '0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel',
  '\0\0\0\x0cjP  \r\n\x87\n',
  '\x04\0\0\0',
  '<!--',
] as const;

/** What is looked at of a file of the corpus. */
export function prefixOf(path: string): Uint8Array {
  return corpusFile(path).subarray(0, SNIFF_BYTES);
}
