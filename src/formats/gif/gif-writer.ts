import { type Animation, roundDelays, type Size } from '../image-header.ts';
import { gifLabel } from './gif-blocks.ts';
import { compressIndices } from './gif-lzw.ts';

export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface GifImage {
  readonly area: Area;
  /** Colour indices of the area, row by row. */
  readonly indices: Uint8Array;
  /** Whether the area becomes transparent before the next image. Otherwise its pixels stay. */
  readonly isCleared: boolean;
}

export interface GifScreen {
  readonly size: Size;
  /** Red, green and blue of at most 256 colours. */
  readonly palette: Uint8Array;
  readonly transparentIndex: number | undefined;
  readonly animation: Animation | undefined;
}

const CENTISECOND_MS = 10;

/** Maximum delay of a graphic control extension, in centiseconds (GIF89a §23). */
const MAX_DELAY_CS = 65_535;

const INTRODUCER = 0x21;
const SEPARATOR = 0x2c;

/** The trailer (GIF89a §27). */
export const END_OF_GIF = Uint8Array.of(0x3b);

/** Disposal methods as in the packed field (GIF89a §23). */
const disposal = { keep: 1 << 2, clear: 2 << 2 } as const;

/** Maximum repeats of the loop extension, where 0 repeats for ever. */
const MAX_REPEATS = 65_535;

/** Writes a GIF (GIF89a) with one colour table for all images, each drawn over the previous ones. */
export function writeGif(screen: GifScreen, images: Iterable<GifImage>): Buffer {
  const { size, palette, transparentIndex, animation } = screen;
  const tableBits = Math.max(1, Math.ceil(Math.log2(palette.length / 3)));
  const table = new Uint8Array(3 << tableBits);
  table.set(palette);
  const screenFlags = 0x80 | ((tableBits - 1) << 4) | (tableBits - 1);
  const parts = beginGif(size, Uint8Array.of(screenFlags, 0, 0, ...table), animation);
  const delaysCs = delaysOf(animation);
  let frame = 0;
  for (const { area, indices, isCleared } of images) {
    const isTransparent = transparentIndex !== undefined;
    if (animation !== undefined || isTransparent) {
      const flags = (isCleared ? disposal.clear : disposal.keep) | (isTransparent ? 1 : 0);
      parts.push(controlExtension(flags, delaysCs[frame] ?? 0, transparentIndex ?? 0));
    }
    const box = [area.left, area.top, area.width, area.height].flatMap(u16);
    parts.push(
      Uint8Array.of(SEPARATOR, ...box, 0),
      compressIndices(indices, Math.max(2, tableBits)),
    );
    frame += 1;
  }
  return Buffer.concat([...parts, END_OF_GIF]);
}

/** Returns the bytes before the first image. `settings`: packed field, background, aspect ratio (GIF89a §18), table. */
export function beginGif(
  { widthPx, heightPx }: Size,
  settings: Uint8Array,
  animation: Animation | undefined,
): Uint8Array[] {
  const signature = Buffer.from('GIF89a');
  const screen = Uint8Array.of(...u16(widthPx), ...u16(heightPx));
  return [signature, screen, settings, loopExtension(animation?.plays ?? 1)];
}

/** Returns the delays of an animation in centiseconds; empty for a still. */
export function delaysOf(animation: Animation | undefined): number[] {
  return roundDelays(animation?.delaysMs ?? [], CENTISECOND_MS, MAX_DELAY_CS);
}

/** @param flags the packed field (GIF89a §23) */
export function controlExtension(
  flags: number,
  delayCs: number,
  transparentIndex: number,
): Uint8Array {
  const control = [INTRODUCER, gifLabel.graphicControl, 4, flags, ...u16(delayCs)];
  return Uint8Array.of(...control, transparentIndex, 0);
}

/** Returns the loop extension; empty for a single play. */
function loopExtension(plays: number): Uint8Array {
  if (plays === 1) return new Uint8Array();
  const repeats = u16(plays === 0 ? 0 : Math.min(MAX_REPEATS, plays - 1));
  const name = Buffer.from('NETSCAPE2.0');
  const head = [INTRODUCER, gifLabel.application, name.length, ...name];
  return Uint8Array.of(...head, 3, 1, ...repeats, 0);
}

function u16(value: number): [number, number] {
  return [value & 0xff, value >> 8];
}
