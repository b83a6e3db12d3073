import type { ByteReader, Extent } from '../byte-reader.ts';
import type { FramePlacement, Size } from '../image-header.ts';
import { hasValidCrc, type PngChunk } from './png-chunks.ts';

/** A frame as described by its `fcTL` (PNG 3rd edition §11.3.6.2). */
export interface ApngFrame extends FramePlacement {
  /** Not rounded. */
  readonly delayMs: number;
  readonly data: Extent[];
}

/** Values by their numbers in `fcTL`. */
const DISPOSALS = ['none', 'background', 'previous'] as const;
const BLENDS = ['source', 'over'] as const;

const ACTL_BYTES = 8;
const FCTL_BYTES = 26;
/** Bytes of the sequence number at the start of an fdAT. */
const SEQUENCE_BYTES = 4;
/** Replaces a denominator of 0 (PNG 3rd edition §11.3.6.2). */
const DEFAULT_DENOMINATOR = 100;
/** Largest four-byte integer (PNG 3rd edition §7.1). */
const MAX_INTEGER = 0x7fff_ffff;

/** Collects the frames of an APNG (PNG 3rd edition §4.9, §11.3.6). Does not throw its first error: stills ignore it. */
export class ApngFrames {
  readonly frames: ApngFrame[] = [];
  plays = 0;
  error: string | undefined;
  readonly #reader: ByteReader;
  readonly #canvas: Size;
  #declaredFrames: number | undefined;
  #nextSequence = 0;
  #hasImageData = false;
  #isDefaultImageFrame = false;

  constructor(reader: ByteReader, canvas: Size) {
    this.#reader = reader;
    this.#canvas = canvas;
  }

  /** Visits the next chunk, which must be within the file. */
  visit(chunk: PngChunk): void {
    switch (chunk.type) {
      case 'acTL':
        this.#visitControl(chunk);
        break;
      case 'fcTL':
        this.#visitFrame(chunk);
        break;
      case 'fdAT':
        this.#visitFrameData(chunk);
        break;
      case 'IDAT':
        this.#hasImageData = true;
        this.#isDefaultImageFrame ||= this.frames.length === 1;
        if (this.#isDefaultImageFrame) this.frames[0]?.data.push(chunk);
        break;
    }
  }

  /** Checks for errors that are only visible after the last chunk. */
  finish(): void {
    this.#expect(
      this.frames.length === this.#declaredFrames,
      () => `acTL declares ${this.#declaredFrames} frames but there are ${this.frames.length}`,
    );
    this.#expectData();
  }

  /** Whether the file has an acTL before the image data (§11.3.6.1). */
  get isAnimated(): boolean {
    return this.#declaredFrames !== undefined;
  }

  get showsMoreThanDefaultImage(): boolean {
    return this.frames.length > 1 || !this.#isDefaultImageFrame;
  }

  #visitControl(chunk: PngChunk): void {
    const { start, end } = chunk;
    if (this.#hasImageData) return;
    this.#expect(!this.isAnimated, () => `second acTL at ${start}`);
    this.#declaredFrames ??= 0;
    if (!this.#expectChunk(chunk, end - start === ACTL_BYTES)) return;
    this.#declaredFrames = this.#reader.u32be(start);
    this.plays = this.#reader.u32be(start + 4);
    const isInRange = this.#declaredFrames > 0 && this.plays <= MAX_INTEGER;
    this.#expect(isInRange, () => `acTL of ${this.#declaredFrames} frames, ${this.plays} plays`);
  }

  #visitFrame(chunk: PngChunk): void {
    const { start, end } = chunk;
    if (!this.#expectChunk(chunk, end - start === FCTL_BYTES)) return;
    if (this.frames.length > 0) this.#expectData();
    this.#expectSequence(start);
    const widthPx = this.#reader.u32be(start + 4);
    const heightPx = this.#reader.u32be(start + 8);
    const leftPx = this.#reader.u32be(start + 12);
    const topPx = this.#reader.u32be(start + 16);
    const numerator = this.#reader.u16be(start + 20);
    const denominator = this.#reader.u16be(start + 22) || DEFAULT_DENOMINATOR;
    const dispose = DISPOSALS[this.#reader.u8(start + 24)];
    const blend = BLENDS[this.#reader.u8(start + 25)];
    const { widthPx: canvasWidthPx, heightPx: canvasHeightPx } = this.#canvas;
    const isWhole = widthPx === canvasWidthPx && heightPx === canvasHeightPx;
    const isWithin =
      widthPx > 0 &&
      heightPx > 0 &&
      leftPx + widthPx <= canvasWidthPx &&
      topPx + heightPx <= canvasHeightPx;
    this.#expect(
      isWithin && (this.#hasImageData || isWhole) && dispose !== undefined && blend !== undefined,
      () => `fcTL at ${start} of ${widthPx}x${heightPx} px at ${leftPx}, ${topPx}`,
    );
    this.frames.push({
      ...{ widthPx, heightPx, leftPx, topPx },
      delayMs: (numerator * 1_000) / denominator,
      dispose: dispose ?? 'none',
      blend: blend ?? 'source',
      data: [],
    });
  }

  #visitFrameData(chunk: PngChunk): void {
    const { start, end } = chunk;
    if (!this.#expectChunk(chunk, end - start >= SEQUENCE_BYTES)) return;
    this.#expectSequence(start);
    const hasOwnFrame = this.frames.length > (this.#isDefaultImageFrame ? 1 : 0);
    if (!this.#expect(this.#hasImageData && hasOwnFrame, () => `fdAT at ${start} without a frame`))
      return;
    this.frames.at(-1)?.data.push({ start: start + SEQUENCE_BYTES, end });
  }

  #expectChunk(chunk: PngChunk, hasValidLength: boolean): boolean {
    const { type, start, end } = chunk;
    return (
      this.#expect(hasValidLength, () => `${type} of ${end - start} bytes at ${start}`) &&
      this.#expect(hasValidCrc(this.#reader, chunk), () => `wrong CRC of ${type} at ${start}`)
    );
  }

  /** Checks the common sequence of fcTL and fdAT, which reveals a missing chunk (§11.3.6). */
  #expectSequence(start: number): void {
    const sequence = this.#reader.u32be(start);
    const expected = this.#nextSequence;
    this.#expect(sequence === expected, () => `sequence ${sequence}, not ${expected}, at ${start}`);
    this.#nextSequence += 1;
  }

  #expectData(): void {
    const count = this.frames.length;
    this.#expect(this.frames.at(-1)?.data.length !== 0, () => `frame ${count} has no image data`);
  }

  #expect(isValid: boolean, describe: () => string): boolean {
    if (!isValid) this.error ??= describe();
    return isValid;
  }
}
