// The package has no types of its own; these are the parts that tests use.
declare module 'omggif' {
  export interface FrameInfo {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
    readonly palette_size: number;
    readonly data_offset: number;
    readonly data_length: number;
    readonly transparent_index: number | null;
    readonly interlaced: boolean;
    readonly disposal: number;
  }

  export class GifReader {
    constructor(gif: Uint8Array);
    numFrames(): number;
    frameInfo(frame: number): FrameInfo;
    decodeAndBlitFrameRGBA(frame: number, pixels: Uint8Array): void;
  }
}
