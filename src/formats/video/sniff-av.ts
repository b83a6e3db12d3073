import { hasAscii } from '../byte-reader.ts';
import { isHeif } from '../heif/heif-header.ts';
import type { AvContainer } from './av-metadata.ts';

/** Types of the first box in QuickTime files without a file type box. */
const QUICKTIME_TYPES = ['moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];

/** EBML magic (RFC 8794 §11.2.1), and our two values of `DocType`: id, length in one byte or eight, name. */
const EBML_MAGIC = '\x1a\x45\xdf\xa3';
const DOC_TYPES = {
  '\x42\x82\x84webm': 'webm',
  '\x42\x82\x88matroska': 'matroska',
  '\x42\x82\x01\0\0\0\0\0\0\x04webm': 'webm',
  '\x42\x82\x01\0\0\0\0\0\0\x08matroska': 'matroska',
} as const;

const PREFIX_BYTES = 128;
const TAB = 9;

export function sniffAv(prefix: Uint8Array): AvContainer | undefined {
  if (hasAscii(prefix, 4, 'ftyp')) {
    if (isHeif(prefix)) return undefined;
    return hasAscii(prefix, 8, 'qt  ') ? 'mov' : 'mp4';
  }
  const isQuickTime = QUICKTIME_TYPES.some((type) => hasAscii(prefix, 4, type));
  // Text may contain `free` at this offset, but not the control characters of box sizes and media data.
  if (isQuickTime && prefix.subarray(0, PREFIX_BYTES).some((byte) => byte < TAB)) return 'mov';
  if (hasAscii(prefix, 0, EBML_MAGIC)) {
    const header = Buffer.from(prefix.subarray(0, PREFIX_BYTES)).toString('latin1');
    return Object.entries(DOC_TYPES).find(([element]) => header.includes(element))?.[1];
  }
  if (hasAscii(prefix, 0, 'OggS')) return 'ogg';
  if (hasAscii(prefix, 0, 'fLaC')) return 'flac';
  const isRiff = hasAscii(prefix, 0, 'RIFF') || hasAscii(prefix, 0, 'RF64');
  if (isRiff && hasAscii(prefix, 8, 'WAVE')) return 'wav';
  return hasAscii(prefix, 0, 'ID3') || readMp3Frame(prefix, 0) !== undefined ? 'mp3' : undefined;
}

interface Mp3Frame {
  readonly bytes: number;
  readonly durationS: number;
}

/** Bitrates of layer III in kbit/s: MPEG-1; MPEG-2 and 2.5. */
const BITRATES = {
  1: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;

/** Sample rates of MPEG-1; MPEG-2 has half, MPEG-2.5 a quarter of them. */
const SAMPLE_RATES = [44_100, 48_000, 32_000] as const;

/** Reads the header of an MPEG audio layer III frame (ISO/IEC 11172-3 §2.4.2.3). */
export function readMp3Frame(bytes: Uint8Array, at: number): Mp3Frame | undefined {
  const [sync = 0, version = 0, rates = 0] = bytes.subarray(at, at + 3);
  const isLayer3 = sync === 0xff && (version & 0xe6) === 0xe2;
  const divisor = [4, undefined, 2, 1][(version >> 3) & 3];
  const bitrate = BITRATES[divisor === 1 ? 1 : 2][(rates >> 4) - 1];
  const baseRate = SAMPLE_RATES[(rates >> 2) & 3];
  if (!isLayer3 || divisor === undefined || bitrate === undefined || baseRate === undefined) {
    return undefined;
  }
  const sampleRate = baseRate / divisor;
  const samples = divisor === 1 ? 1152 : 576;
  const padding = (rates >> 1) & 1;
  return {
    bytes: Math.floor((samples / 8) * ((bitrate * 1000) / sampleRate)) + padding,
    durationS: samples / sampleRate,
  };
}
