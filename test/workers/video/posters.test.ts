import { describe, expect, test } from 'vitest';
import type { ByteSource, FrameDecoder } from '../../../src/formats/video/av-metadata.ts';
import { inspectAv } from '../../../src/workers/child/video/inspect-av.ts';
import { renderPoster } from '../../../src/workers/child/video/render-poster.ts';
import { join, type Part, put, u32be } from '../../formats/containers.ts';
import { box } from '../../support/images/heif-file.ts';
import { anyJob } from '../../support/processes/worker-pool.ts';
import { atScale } from '../../support/test-scale.ts';
import {
  BareDecoder,
  colourVideos,
  findBox,
  fixtureVideos,
  freeBox,
  hasFfmpeg,
  memorySource,
  posterOf,
  probe,
  readVideo,
  runFfmpeg,
  sparseSource,
  withGap,
} from '../../support/videos.ts';

async function makePoster(
  source: ByteSource,
  decoder: FrameDecoder = new BareDecoder(),
): Promise<Buffer> {
  const { video } = await inspectAv(source);
  if (video === undefined) throw new Error('Expected a video');
  const { size: originalSize, orientation } = video;
  const { widthPx, heightPx } = originalSize;
  const size = orientation < 5 ? originalSize : { widthPx: heightPx, heightPx: widthPx };
  const job = { ...anyJob, originalSize, orientation, size, maxResultBytes: 1e8 };
  return Buffer.from(await renderPoster(source, decoder, job));
}

// test/http/media/posters requests other files from the complete service.
const rows = atScale(
  colourVideos.filter((_, at) => at % 4 === 0),
  colourVideos,
);
test.skipIf(!hasFfmpeg).each(rows)(
  'the poster of $file has the expected size and colours',
  async (row) => {
    const poster = await makePoster(memorySource(readVideo(row.file, 'video-colours')));
    const { size, colours } = posterOf(row);
    const measured = await probe(poster, colours);
    expect(measured.size).toBe(size);
    expect(measured.distance).toBeLessThanOrEqual(4);
  },
);

/** Returns the beginning of a WebM whose cluster has an unknown size, as in a live stream. */
function beginLiveStream(): Buffer {
  const file = readVideo('clip-vp8.webm').subarray(0, 760);
  const size = file.indexOf('1f43b675', 0, 'hex') + 4;
  const payloadAt = size + Math.clz32(file[size] ?? 0) - 23;
  return join(file.subarray(0, size), '\x01\xff\xff\xff\xff\xff\xff\xff', file.subarray(payloadAt));
}

test.skipIf(!hasFfmpeg).each([
  ['a block after the key frame', readVideo('clip-vp8.webm').subarray(0, 760)],
  ['the head of a block after the key frame', readVideo('clip-vp8.webm').subarray(0, 740)],
  ['a long block after the key frame', readVideo('clip-av1.mkv').subarray(0, 1300)],
  ['the cues at the end', readVideo('clip-vp8.webm').subarray(0, -3)],
  ['a live stream', beginLiveStream()],
])('returns the poster of a Matroska file that ends within %s', async (_, file) => {
  const { colours } = posterOf(fixtureVideos[0] ?? {});
  const { distance } = await probe(await makePoster(memorySource(file)), colours);
  expect(distance).toBeLessThanOrEqual(6);
});

test('detects an EBML format whose name has a length of eight bytes', async () => {
  const file = readVideo('clip-vp8.webm');
  const [before, after] = file.toString('latin1').split('B\x82\x84webm');
  const long = join(`${before}B\x82\x01\0\0\0\0\0\0\x04webm${after}`);
  long.writeUInt8(file.readUInt8(4) + 7, 4); // the size of the header
  expect((await inspectAv(memorySource(long))).container).toBe('webm');
});

test.each([
  ['clip-h264.mp4', 'avc1.64000b'],
  ['hevc-main10.mp4', 'hvc1.2.4.L60.90'],
  ['clip-vp8.webm', 'vp8'],
  ['odd-vp9.webm', 'vp09.00.10.08'],
  ['clip-av1.mkv', 'av01.0.00M.10'],
])('the codec of %s is %s (RFC 6381)', async (file, codec) => {
  expect((await inspectAv(memorySource(readVideo(file)))).codec).toBe(codec);
});

test.skipIf(!hasFfmpeg).each([
  ['aac', 'a.m4a', 'mp4a.40.2'],
  ['libmp3lame', 'a.mp3', 'mp3'],
  ['libmp3lame', 'a.mkv', 'mp3'],
  ['libopus', 'a.webm', 'opus'],
  ['pcm_s16le', 'a.wav', 'pcm'],
  ['pcm_mulaw', 'a.wav', 'pcm'],
  ['pcm_alaw', 'a.mov', 'pcm'],
])('audio of %s in %s has the codec %s', async (coder, file, codec) => {
  const metadata = await inspectAv(
    memorySource(await runFfmpeg(`-f lavfi -i sine=r=48000 -t 1 -c:a ${coder}`, file)),
  );
  expect(metadata).toMatchObject({ codec, kind: 'audio', hasAudio: true, video: undefined });
  expect(metadata.durationS).toBeCloseTo(1, 0);
});

test('reads the duration of fragments from the track header', async () => {
  const file = readVideo('clip-fragmented.mp4');
  // Chromium's MediaRecorder writes milliseconds into the media header, regardless of its time scale.
  file.writeUInt32BE(2_000, findBox(file, 'mdhd') + 24);
  file.writeUInt32BE(2_000, findBox(file, 'tkhd') + 28);
  expect((await inspectAv(memorySource(file))).durationS).toBe(2);
});

test('limits the search for the duration of many fragments without a table', async () => {
  const file = readVideo('clip-fragmented.mp4');
  const movie = file.subarray(0, findBox(file, 'mfra'));
  const fragmentBytes = 5_000_000;
  const fragments = Array.from({ length: 100 }, (_, at) => {
    const boxes = join('\0\0\0\x08moof', freeBox(fragmentBytes - 8));
    return [movie.length + at * fragmentBytes, boxes] as const;
  });
  const source = sparseSource(5e8 + movie.length, [[0, movie], ...fragments]);
  expect((await inspectAv(source)).posterError).toBeUndefined();
  expect(source.reads).toBeLessThanOrEqual(4);
});

test.skipIf(!hasFfmpeg).each(atScale([], [180]))(
  'does not read %i s of audio',
  async (durationS) => {
    const inputs = '-f lavfi -i testsrc2=s=64x48:r=30 -f lavfi -i sine=r=48000';
    const coders = '-c:v libx264 -preset veryfast -c:a aac';
    const video = await runFfmpeg(`${inputs} -t ${durationS} ${coders}`, 'a.mp4');
    const source = withGap(video, 'moov', 500_000_000);
    expect(await inspectAv(source)).toMatchObject({ hasAudio: true, durationS });
    Object.assign(source, { reads: 0, readBytes: 0 });
    await makePoster(source);
    // Twice, for the metadata and for the poster: the index without audio has this size.
    expect(video.length - video.indexOf('moov')).toBeGreaterThan(150_000);
    expect(source.readBytes / 2).toBeLessThanOrEqual(256 * 1024);
    expect(source.reads / 2).toBeLessThanOrEqual(6);
  },
);

describe('originals without a poster', () => {
  const withAudio = readVideo('clip-faststart-601-full.mp4');
  /** Replaces bytes after a name in the file. */
  const changed = (name: string, offset: number, ...bytes: readonly Part[]) =>
    put(withAudio, withAudio.lastIndexOf(name) + offset, ...bytes);
  const everything = u32be(0xffff_ffff);
  /** A movie box with 17 MiB of titles, which are ignored. */
  const withTitles = () => {
    const file = readVideo('clip-h264.mp4');
    const titles = box('udta', Buffer.alloc(17 * 2 ** 20));
    const movie = findBox(file, 'moov');
    file.writeUInt32BE(file.readUInt32BE(movie) + titles.length, movie);
    return join(file, titles);
  };

  test.each([
    ['an empty table of key frames', changed('stss', 8, u32be(0)), 'UNPROCESSABLE_MEDIA'],
    ['a run of 2^32 samples', changed('stts', 12, everything), 'MEDIA_TOO_LARGE'],
    ['a run of 2^32 shifts', changed('ctts', 12, everything), 'MEDIA_TOO_LARGE'],
    ['a chunk of 2^32 samples', changed('stsc', 16, everything), 'MEDIA_TOO_LARGE'],
    ['2^32 samples', changed('stsz', 12, everything), 'MEDIA_TOO_LARGE'],
    ['an index of more than 16 MiB', withTitles(), 'MEDIA_TOO_LARGE'],
    ['an edge of 65 535', changed('avc1', 28, 0xff, 0xff), 'MEDIA_TOO_LARGE'],
    ['at most 8192 x 4352 px', changed('avc1', 28, 32, 0, 17, 0), undefined],
    ['one row more than 8192 x 4352', changed('avc1', 28, 32, 0, 17, 1), 'MEDIA_TOO_LARGE'],
    ['no width', changed('avc1', 28, 0, 0), 'UNPROCESSABLE_MEDIA'],
    ['another codec', changed('avc1', 0, 'mp4v'), 'UNSUPPORTED_MEDIA_TYPE'],
    ['an encrypted track', changed('avc1', 0, 'encv'), 'UNSUPPORTED_MEDIA_TYPE'],
    ['no movie', changed('moov', 0, 'free'), 'UNPROCESSABLE_MEDIA'],
    ['half of an index', withAudio.subarray(0, 700), 'UNPROCESSABLE_MEDIA'],
    ['the beginning of a WebM', readVideo('clip-vp8.webm').subarray(0, 60), 'UNPROCESSABLE_MEDIA'],
  ])('%s', async (_, file, code) => {
    const { kind, posterError } = await inspectAv(memorySource(file));
    expect(kind).toBe('video');
    expect(posterError?.code).toBe(code);
  });

  test('reports the audio in the index of an unreadable video', async () => {
    const file = readVideo('truncated.mp4');
    file.writeUInt8(255, file.indexOf('tkhd') + 4); // its version
    const posterError = { code: 'UNPROCESSABLE_MEDIA' };
    const metadata = { kind: 'video', hasAudio: true, posterError };
    expect(await inspectAv(memorySource(file))).toMatchObject(metadata);
  });

  test.each([
    ['a size that the container does not have', changed('avc1', 28, 0, 242), 'h264'],
    ['a truncated frame', readVideo('truncated.mp4')],
  ])('%s', async (_, file, ...decoded) => {
    const decoder = new BareDecoder();
    const making = makePoster(memorySource(file), decoder);
    await expect(making).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    expect(decoder.codecs).toEqual(decoded);
  });
});
