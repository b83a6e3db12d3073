// The package has no types of its own; these are the parts that tests use.
declare module 'omggif' {
  export interface FrameInfo {
    readonly width: number;
    readonly height: number;
    readonly palette_size: number;
    readonly transparent_index: number | null;
    readonly data_offset: number;
    readonly data_length: number;
    readonly interlaced: boolean;
  }

  export class GifReader {
    constructor(gif: Uint8Array);
    numFrames(): number;
    frameInfo(frame: number): FrameInfo;
    decodeAndBlitFrameRGBA(frame: number, pixels: Uint8Array): void;
  }
}
