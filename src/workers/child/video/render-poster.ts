import type { InputVideoTrack } from 'mediabunny';
import type { Sharp } from 'sharp';
import { MediaError } from '../../../contract/errors.ts';
import { corruptMedia } from '../../../formats/byte-reader.ts';
import type { CodePoints, Size } from '../../../formats/image-header.ts';
import type {
  ByteSource,
  FrameDecoder,
  VideoCodec,
  VideoTrack,
} from '../../../formats/video/av-metadata.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { checkResultSize, encodeStill } from '../encode.ts';
import { type CodedPicture, toRgb } from '../picture-to-rgb.ts';
import { autoOrient, fromPixels, type Pixels, resize, toPixels } from '../pixels.ts';
import { BlockCache } from './block-cache.ts';
import './colour-names.ts';
import { toElementaryStream } from './elementary-stream.ts';
import { demultiplex, GuardedSource } from './guarded-source.ts';
import { findPosterError, readVideoTrack } from './inspect-av.ts';
import { readKeyFrames } from './key-frames.ts';
import { mapToSrgb } from './map-to-srgb.ts';
import { isFileError, type OpenedAv, openAv, sniffContainer } from './open-av.ts';
import { type DecodedFrame, isEmpty, readY4m } from './y4m.ts';

/** Minimum height of an untagged video that has the matrix of BT.709 (contract §12). */
const MIN_HD_HEIGHT_PX = 720;

/** Matrix coefficients by name (ITU-T H.273 table 4). */
const MATRICES: Readonly<Partial<Record<string, number>>> = {
  rgb: 0,
  bt709: 1,
  fcc: 4,
  bt470bg: 5,
  smpte170m: 6,
  smpte240m: 7,
  ycgco: 8,
  'bt2020-ncl': 9,
};

/** Code points by name (ITU-T H.273 tables 2 and 3); all others count as sRGB. */
const PRIMARIES: Readonly<Partial<Record<string, number>>> = { bt709: 1, bt2020: 9, smpte432: 12 };
const TRANSFERS: Readonly<Partial<Record<string, number>>> = {
  bt470m: 4,
  bt470bg: 5,
  linear: 8,
  pq: 16,
  hlg: 18,
};
const UNSPECIFIED = 2;

interface Decodable {
  readonly opened: OpenedAv;
  readonly track: InputVideoTrack;
  readonly videoTrack: VideoTrack;
  readonly codec: VideoCodec;
  readonly decoder: FrameDecoder;
  /** The track's `avcC` or `hvcC`. */
  readonly description: Uint8Array | undefined;
}

interface Picture {
  readonly frame: DecodedFrame;
  readonly alpha: DecodedFrame | undefined;
}

/**
 * Renders the poster of a video (contract §12): the first key frame that is not empty, with square pixels, in sRGB.
 *
 * @param job with `originalSize` and `orientation` from the video's metadata
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`; errors of the source and of the decoder
 */
export async function renderPoster(
  source: ByteSource,
  decoder: FrameDecoder,
  job: RenderJob,
): Promise<Uint8Array> {
  const video = await openVideo(source, decoder);
  const { codedSize, size, orientation } = video.videoTrack;
  const isPlanned = isSameSize(size, job.originalSize) && orientation === job.orientation;
  if (!isPlanned) throw corruptMedia('the video differs from the planned one');
  const { frame, alpha } = await choosePicture(video);
  const { opened, track } = video;
  // The container's tags have priority over the stream's.
  const colour = await demultiplex(opened.source, () => track.getColorSpace());
  const picture = toPicture(frame, colour, codedSize);
  // The luma of alpha has the full range, regardless of its stream's declaration (WebM container guidelines).
  const opacity = alpha && { ...alpha, matrix: 0, isFullRange: true };
  const pixels = toRgb(picture, opacity, mapToSrgb(codePointsOf(colour)));
  const image = resize(await autoOrient(await square(pixels, size), orientation), job);
  return checkResultSize(await encodeStill(image, job), job);
}

function codePointsOf({ primaries, transfer }: VideoColorSpaceInit): CodePoints {
  return {
    primaries: primaries == null ? UNSPECIFIED : (PRIMARIES[primaries] ?? 1),
    transfer: TRANSFERS[transfer ?? ''] ?? UNSPECIFIED,
  };
}

async function openVideo(source: ByteSource, decoder: FrameDecoder): Promise<Decodable> {
  const cache = new BlockCache(source);
  const container = await sniffContainer(cache);
  if (container === undefined || container === 'mp3') throw corruptMedia('not a video container');
  const opened = await openAv(cache, new GuardedSource(cache, container));
  const videoTrack = opened.video && (await readVideoTrack(opened, opened.video));
  const posterError = await findPosterError(opened, videoTrack);
  if (posterError !== undefined) {
    throw new MediaError(posterError.code, { cause: new Error(posterError.reason) });
  }
  const track = opened.video;
  if (track === undefined || videoTrack?.codec === undefined) throw corruptMedia('no video');
  const config = await demultiplex(opened.source, () => track.getDecoderConfig());
  const bytes = config?.description;
  const description = bytes instanceof Uint8Array ? bytes : undefined;
  return { opened, track, videoTrack, codec: videoTrack.codec, decoder, description };
}

/** Decodes key frames until one is not empty; otherwise returns the first. */
async function choosePicture(video: Decodable): Promise<Picture> {
  let first: (() => Promise<Picture>) | undefined;
  for await (const { data, alpha } of readKeyFrames(video.opened, video.track)) {
    try {
      const frame = await decodeFrame(video, data);
      const finish = async (): Promise<Picture> => ({
        frame,
        alpha: alpha && (await decodeFrame(video, alpha)),
      });
      if (!isEmpty(frame)) return await finish();
      first ??= finish;
    } catch (error) {
      if (first === undefined || !isFileError(error)) throw error;
    }
  }
  if (first === undefined) throw corruptMedia('no key frame');
  return await first();
}

async function decodeFrame(
  { videoTrack: { codedSize: size }, codec, decoder, description }: Decodable,
  data: Uint8Array,
): Promise<DecodedFrame> {
  const stream = toElementaryStream(codec, data, description, size);
  const file = await decoder.decode({ codec, stream, size });
  return readY4m(file, size);
}

function toPicture(
  { planes, depth, isFullRange }: DecodedFrame,
  { matrix, fullRange }: VideoColorSpaceInit,
  { heightPx }: Size,
): CodedPicture {
  const untagged = heightPx >= MIN_HD_HEIGHT_PX ? 'bt709' : 'smpte170m';
  return {
    planes,
    depth,
    matrix: MATRICES[matrix ?? untagged] ?? 2,
    isFullRange: fullRange ?? isFullRange ?? false,
  };
}

async function square(pixels: Pixels, size: Size): Promise<Sharp> {
  const image = fromPixels(pixels);
  if (isSameSize(pixels, size)) return image;
  const box = { width: size.widthPx, height: size.heightPx, fit: 'fill' } as const;
  return fromPixels(await toPixels(image.resize(box)));
}

function isSameSize(one: Size, other: Size): boolean {
  return one.widthPx === other.widthPx && one.heightPx === other.heightPx;
}
