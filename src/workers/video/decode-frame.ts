import { MediaError } from '../../contract/errors.ts';
import {
  type DecodeRequest,
  MAX_FRAME_PIXELS,
  maxFrameBytes,
  type VideoCodec,
} from '../../formats/video/av-metadata.ts';
import type { ForkServer, ProgramStart } from '../fork-server/client.ts';
import { overloaded } from '../worker-errors.ts';
import { ProgramError, runProgram } from './program-run.ts';

/** ffmpeg's format and decoder by codec. */
export const codecs: Readonly<Record<VideoCodec, readonly [format: string, decoder: string]>> = {
  h264: ['h264', 'h264'],
  hevc: ['hevc', 'hevc'],
  vp8: ['ivf', 'vp8'],
  vp9: ['ivf', 'vp9'],
  av1: ['ivf', 'libdav1d'],
};

/** Error lines of a machine without free processes, namespaces, descriptors or threads. */
const NOT_RUN =
  /^(bwrap|sh|setpriv|nice|env): |error while loading shared libraries: |(creat|start)ing thread|pthread_create/i;

/** Relabels 8-bit planes of green, blue and red as luma and chroma, as matrix 0 does (ITU-T H.273). */
const RENAME_RGB = ['-vf', 'mergeplanes=0x000102:yuv444p'];

/** Decodes a frame with ffmpeg. @throws as `FrameSource.decode` */
export async function* decodeFrame(
  forkServer: ForkServer,
  start: ProgramStart,
  request: DecodeRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* runDecoder(forkServer, start, request, signal, []);
  } catch (error) {
    if (!lacksName(error)) throw error;
    try {
      yield* runDecoder(forkServer, start, request, signal, RENAME_RGB);
    } catch (cause) {
      // Green, blue and red planes are the only decoded format for which Y4M has no name.
      const isOther = cause instanceof MediaError && cause.code === 'UNPROCESSABLE_MEDIA';
      throw isOther ? new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause: cause.cause }) : cause;
    }
  }
}

async function* runDecoder(
  forkServer: ForkServer,
  start: ProgramStart,
  { codec, stream, size }: DecodeRequest,
  signal: AbortSignal,
  filter: readonly string[],
): AsyncGenerator<Uint8Array, void> {
  const lines: string[] = [];
  const [format, decoder] = codecs[codec];
  const run = {
    ...start,
    args: [
      ...['-hide_banner', '-loglevel', 'error', '-nostdin', '-protocol_whitelist', 'pipe'],
      ...['-threads', '1', '-xerror', '-err_detect', 'explode'],
      ...['-max_pixels', String(MAX_FRAME_PIXELS)],
      ...['-f', format, '-c:v', decoder, '-i', 'pipe:0'],
      ...['-map', '0:v:0', '-frames:v', '1', ...filter, '-filter_threads', '1'],
      ...['-c:v', 'wrapped_avframe', '-strict', '-1', '-f', 'yuv4mpegpipe', 'pipe:1'],
    ],
    input: stream,
    maxOutputBytes: maxFrameBytes(size),
    onLine: (line: string) => lines.push(line),
  };
  try {
    yield* runProgram(forkServer, run, signal);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    const shortage = lines.find((line) => NOT_RUN.test(line));
    if (shortage !== undefined) throw overloaded(shortage);
    const cause = new Error([`The video decoder failed: ${error.message}`, ...lines].join('\n'));
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }
}

/** Whether Y4M has no name for the format of a decoded frame; ffmpeg has written nothing then. */
function lacksName(error: unknown): boolean {
  return (
    error instanceof MediaError &&
    error.cause instanceof Error &&
    error.cause.message.includes('yuv4mpeg can only handle')
  );
}
