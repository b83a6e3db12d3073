import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { MediaError } from '../../../src/contract/errors.ts';
import { useTemporaryFolder } from '../temporary-folder.ts';

/** Whether Debian's ffmpeg is here, with which tests make and decode videos. */
export const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

const inputs: Readonly<Record<string, readonly string[]>> = {
  h264: ['-f', 'h264', '-c:v', 'h264'],
  hevc: ['-f', 'hevc', '-c:v', 'hevc'],
  vp8: ['-f', 'ivf', '-c:v', 'vp8'],
  vp9: ['-f', 'ivf', '-c:v', 'vp9'],
  av1: ['-f', 'ivf', '-c:v', 'libdav1d'],
};

/** A decoder without walls, and what it was asked. */
export class BareDecoder {
  readonly codecs: string[] = [];

  async decode({ codec, stream }: { readonly codec: string; readonly stream: Uint8Array }) {
    this.codecs.push(codec);
    const common =
      '-hide_banner -loglevel error -nostdin -protocol_whitelist pipe -threads 1 -xerror -err_detect explode';
    const output =
      '-i pipe:0 -map 0:v:0 -frames:v 1 -filter_threads 1 -c:v wrapped_avframe -strict -1 -f yuv4mpegpipe pipe:1';
    const args = [...common.split(' '), ...(inputs[codec] ?? []), ...output.split(' ')];
    const { status, stdout } = spawnSync('ffmpeg', args, { input: stream, maxBuffer: Infinity });
    if (status !== 0) throw new MediaError('UNPROCESSABLE_MEDIA');
    return new Uint8Array(stdout);
  }
}

/** Measures the size of a picture, and the distance of each quadrant's middle from a colour. */
export async function probe(poster: Uint8Array, colours: readonly (readonly number[])[]) {
  const { data, info } = await sharp(poster).raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  const distances = colours.map((colour, quadrant) => {
    const left = Math.floor((width * (quadrant % 2 === 0 ? 1 : 3)) / 4);
    const top = Math.floor((height * (quadrant < 2 ? 1 : 3)) / 4);
    const at = (top * width + left) * channels;
    const pixel = [...data.subarray(at, at + channels)];
    return Math.max(...pixel.map((level, channel) => Math.abs(level - (colour[channel] ?? 255))));
  });
  return { size: `${width}x${height}`, distance: Math.max(...distances) };
}

/** Makes a file by ffmpeg's arguments, and returns it. */
export async function runFfmpeg(args: string, file: string): Promise<Buffer> {
  const path = join((await useTemporaryFolder()).path, file);
  execFileSync('ffmpeg', `-loglevel error ${args} ${path}`.split(' '));
  return readFileSync(path);
}
