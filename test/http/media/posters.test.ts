import sharp from 'sharp';
import { describe, expect, it, test } from 'vitest';
import { join } from '../../formats/containers.ts';
import { refuse } from '../../support/http/refusal.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import {
  samples,
  shareTestApp,
  type TestApp,
  useTestApp,
  withDecoder,
} from '../../support/test-app.ts';
import { atScale } from '../../support/test-scale.ts';
import {
  fieldVideos,
  fixtureVideos,
  freeBox,
  hasFfmpeg,
  posterOf,
  probe,
  readVideo,
  runFfmpeg,
  withGap,
} from '../../support/videos.ts';

const clip = readVideo('clip-h264.mp4');
const PATH = '/attachments/1/2/clip.mp4';
const KEY = PATH.slice(1);

const decoding = { settings: { ...withDecoder, ...metricsSettings } };

describe.skipIf(!hasFfmpeg)('a video', () => {
  const app = shareTestApp(decoding);

  test.each(fixtureVideos)('has a poster: $file: $note', async (row) => {
    const { file = '', poster_status: status = '' } = row;
    const video = readVideo(file);
    const path = `/attachments/9/9/${file}`;
    app.originals.put(path.slice(1), video);
    const png = await app.get(`${path}?format=png`);
    expect(png.statusCode).toBe(Number(status));
    expect((await app.get(path)).rawPayload.equals(video)).toBe(true);
    if (status !== '200') return;
    expect(png.headers).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': `inline; filename="${file.replace(/\.\w+$/, '.png')}"`,
      'cache-control': 'public, max-age=31536000, immutable',
    });
    const expected = posterOf(row);
    const { size, distance } = await probe(png.rawPayload, expected.colours);
    expect(size).toBe(expected.size);
    expect(distance).toBeLessThanOrEqual(Number(row.tolerance));
  });

  test.each(fieldVideos)('has a poster with its colours: $note', async (row) => {
    const { file = '', poster_status: status, fields = '' } = row;
    const video = readVideo(file, 'video-fields');
    const png = await app.serve(video, `/attachments/2/{id}/${file}?format=png`);
    expect(png.statusCode).toBe(Number(status));
    if (status !== '200') return;
    const { data, info } = await sharp(png.rawPayload).raw().toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width: 256, height: 192, channels: 3 });
    for (const [field, colour] of (fields === '-' ? [] : fields.split(' ')).entries()) {
      const at = ((24 + 48 * Math.floor(field / 4)) * 256 + 32 + 64 * (field % 4)) * 3;
      const pixel = [...data.subarray(at, at + 3)];
      const distances = colour
        .split(',')
        .map((level, at) => Math.abs(Number(level) - (pixel[at] ?? 999)));
      expect(Math.max(...distances), `field ${field}: ${pixel}`).toBeLessThanOrEqual(6);
    }
  });

  it('is not detected in a fragmented audio-only MP4, which is sent as audio', async () => {
    const fragments = '-movflags +frag_keyframe+empty_moov+default_base_moof -f mp4';
    const audio = await runFfmpeg(`-f lavfi -i sine=d=1 -c:a aac ${fragments}`, 'voice.m4a');
    for (const [bytes, type] of [
      [audio, 'audio/mp4'],
      [readVideo('clip-fragmented.mp4'), 'video/mp4'],
      [audio.subarray(0, 400), 'video/mp4'], // without the end of its index
    ] as const) {
      const { headers } = await app.serve(bytes, '/attachments/3/{id}/voice.m4a');
      expect(headers['content-type']).toBe(type);
    }
  });

  it('returns 422 if its first key frame is damaged, even if later ones are intact', async () => {
    const damaged = Buffer.from(readVideo('black-start.mp4'));
    const media = damaged.indexOf('mdat', 0, 'latin1') + 4;
    damaged.fill(0, media, media + 600);
    app.originals.put(KEY, damaged);
    await refuse(app, `${PATH}?format=png&width=17`, 'UNPROCESSABLE_MEDIA', 'public, max-age=300');
  });

  it('that was replaced after its metadata was read has the poster of the new version', async () => {
    const key = 'attachments/5/7/clip.mp4';
    app.originals.put(key, clip);
    expect((await app.get(`/${key}?format=png`)).statusCode).toBe(200);
    app.originals.put(key, readVideo('phone-portrait.mov'));
    const { statusCode, rawPayload } = await app.get(`/${key}?format=png&width=1000`);
    expect(statusCode).toBe(200);
    expect(await sharp(rawPayload).metadata()).toMatchObject({ width: 160, height: 240 });
  });

  it.each([
    ['format=gif&animated=true', 'gif', 240, 160],
    ['format=jpg&width=100&height=100', 'jpeg', 100, 100],
    ['format=jpg&width=4096', 'jpeg', 240, 160],
    ['format=jpg&height=80', 'jpeg', 120, 80],
  ])('has a poster, cropped to a box and never upscaled: %s', async (query, ...expected) => {
    const { rawPayload } = await app.serve(clip, `/attachments/1/{id}/clip.mp4?${query}`);
    const { format, width, height, pages = 1 } = await sharp(rawPayload).metadata();
    expect([format, width, height, pages]).toEqual([...expected, 1]);
  });

  it('has a poster with quality high by default', async () => {
    app.originals.put(KEY, clip);
    const [none, high, lossless] = await Promise.all(
      ['', '&quality=high', '&quality=lossless'].map(
        async (quality) => (await app.get(`${PATH}?format=jpeg${quality}`)).body,
      ),
    );
    expect(none).toBe(high);
    expect(none).not.toBe(lossless);
  });

  it.each(['quality=high', 'quality=lossless', 'animated=true', 'quality=high&animated=true'])(
    'is sent unchanged with %s, including ranges',
    async (query) => {
      app.originals.put(KEY, clip);
      const { inspections } = app.renderer;
      const { etag = '' } = (await app.get(PATH)).headers;
      const request = (headers = {}) => app.get(`${PATH}?${query}`, headers);
      const whole = await request();
      expect([whole.statusCode, whole.rawPayload.equals(clip)]).toEqual([200, true]);
      const named = { 'content-disposition': 'inline; filename="clip.mp4"', etag };
      expect(whole.headers).toMatchObject({ 'content-type': 'video/mp4', ...named });
      const part = await request({ range: 'bytes=100-199' });
      expect([part.statusCode, part.rawPayload]).toEqual([206, clip.subarray(100, 200)]);
      const again = await request({ 'if-none-match': etag });
      expect([again.statusCode, app.renderer.inspections]).toEqual([304, inspections]);
    },
  );

  it.each(['width=100', 'height=100', 'width=10&height=10&quality=high', 'quality=low'])(
    'returns 415 without a format for %s, and explains how to get a poster, cached or not',
    async (query) => {
      const message = 'The original is a video: add format to the URL to get its poster.';
      const refusal = ['UNSUPPORTED_MEDIA_TYPE', 'public, max-age=300', {}, message] as const;
      await refuse(app, `${PATH}?${query}`, ...refusal);
      await refuse(app, `${PATH}?${query}`, ...refusal);
    },
  );

  it('is detected by content, regardless of its name', async () => {
    for (const [extension, bytes] of [
      ['png', clip],
      ['mp4', samples.jpeg],
      ['3gp', clip],
    ] as const) {
      const path = `/attachments/1/{id}/picture.${extension}?format=webp&width=60`;
      const { statusCode, headers } = await app.serve(bytes, path);
      expect([statusCode, headers['content-type']], extension).toEqual([200, 'image/webp']);
      expect(headers['content-disposition']).toBe('inline; filename="picture.webp"');
    }
    expect((await app.serve(clip, '/avatars/{id}/ab.webp')).statusCode).toBe(415);
  });

  it('is not detected in text with the name of a box at the position of old files', async () => {
    for (const text of ['The free lunch', 'Hey moov on', 'abc mdat', 'far wide']) {
      const key = `attachments/1/2/${text.replaceAll(' ', '-')}`;
      app.originals.put(key, Buffer.from(`${text}, and so on.\n`));
      const { headers } = await app.get(`/${key}`);
      expect(headers['content-type']).toBe('text/plain; charset=utf-8');
      expect((await app.get(`/${key}?format=webp`)).statusCode).toBe(415);
      const expected = { kind: 'file', transformable: false };
      expect(await requestMetadata(app, key)).toMatchObject(expected);
    }
  });

  it('takes one inspection and one render for concurrent requests, and caches metadata for other sizes', async () => {
    const { inspections, renders } = app.renderer;
    app.originals.put('attachments/3/4/clip.mp4', clip);
    const request = (query: string) => app.get(`/attachments/3/4/clip.mp4?format=webp${query}`);
    await Promise.all(Array.from({ length: 20 }, () => request('')));
    expect(app.renderer).toMatchObject({ inspections: inspections + 1, renders: renders + 1 });
    expect((await request('&width=99')).statusCode).toBe(200);
    expect(app.renderer).toMatchObject({ inspections: inspections + 1, renders: renders + 2 });
  });

  it.each([
    ['its index at the end', 'clip-h264.mp4', 'moov'],
    ['its index in front of a gap', 'clip-faststart-601-full.mp4', 'mdat'],
    ['its index in front', 'clip-faststart-601-full.mp4', undefined],
    ['fragments', 'clip-fragmented.mp4', undefined],
  ])('of 500 MB is read in ranges, with %s', async (name, file, boxBefore) => {
    const source = withGap(readVideo(file), boxBefore, 500_000_000);
    const { sizeBytes } = source;
    const app = await useTestApp(decoding);
    app.originals.open = async (_key, { range }) => {
      const { first = 0, last = Infinity } = range ?? {};
      const end = Math.min(last + 1, sizeBytes);
      const part = { first, last: end - 1 };
      const body = await source.read(first, end);
      return { body, part, sizeBytes, etag: name, lastModified: undefined };
    };
    expect((await app.get(`${PATH}?format=webp`)).statusCode).toBe(200);
    expect(source.reads).toBeLessThanOrEqual(6);
    expect(source.readBytes).toBeLessThan(256 * 1024);
  });

  it('reads at most VIDEO_MAX_READ_BYTES', async () => {
    const app = await useTestApp({
      settings: { ...decoding.settings, VIDEO_MAX_READ_BYTES: '1048576' },
    });
    const large = Buffer.concat([clip, freeBox(4_000_000), Buffer.alloc(3_999_992)]);
    const moov = clip.indexOf('moov', 0, 'latin1') - 4;
    large.writeUInt32BE(large.length - moov, moov);
    app.originals.put(KEY, large);
    await refuse(app, `${PATH}?format=webp`, 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect(app.originals.requestedBytes.get(KEY)).toBeLessThanOrEqual(1_048_576);
  });

  it('returns 502 and caches nothing if it is replaced during each read', async () => {
    const key = 'attachments/5/6/clip.mp4';
    let replacements = 0;
    app.originals.alter = (opened) => {
      if (replacements < 2 && app.originals.reads.get(key) === 2 * replacements + 1) {
        replacements += 1;
        const next = join(clip, freeBox(200_000 + replacements));
        app.originals.put(key, join(next, Buffer.alloc(199_992 + replacements)));
      }
      return opened;
    };
    // Larger than the first block, so that there is a second read.
    app.originals.put(key, Buffer.concat([clip, freeBox(200_000), Buffer.alloc(199_992)]));
    await refuse(app, `/${key}?format=webp`, 'ORIGIN_ERROR', 'no-store');
    expect((await app.get(`/${key}?format=webp`)).statusCode).toBe(200);
  });

  it('has metadata with its poster as placeholder', async () => {
    const key = 'attachments/7/8/phone.mov';
    app.originals.put(key, readVideo('phone-portrait.mov'));
    expect(await requestMetadata(app, key)).toMatchObject({
      ...{ kind: 'video', content_type: 'video/quicktime', width: 160, height: 240, duration: 1 },
      ...{ animated: false, frames: null, has_audio: false, codec: 'hvc1.1.6.L60.90' },
      ...{ transformable: true, placeholder: expect.any(String), placeholder_version: 1 },
    });
    expect(app.originals.reads.get(key)).toBe(1);
  });
});

test.skipIf(!hasFfmpeg).each(atScale([40], [1, 40]))(
  'returns 504 for a poster that takes longer than %i ms',
  async (timeoutMs) => {
    const settings = { ...withDecoder, TRANSFORM_TIMEOUT_MS: String(timeoutMs) };
    const app = await useTestApp({ settings });
    app.originals.put(KEY, clip);
    await refuse(app, `${PATH}?format=png`, 'TRANSFORM_TIMEOUT', 'no-store');
  },
);

describe('without a decoder', () => {
  const app = shareTestApp({ settings: metricsSettings });

  it.each(fixtureVideos)(
    '$file has no poster, but everything else',
    async ({ file = '', poster_status, duration_s = '-', note = '' }) => {
      const key = `attachments/1/2/${file}`;
      app.originals.put(key, readVideo(file));
      const { inspections } = app.renderer;
      expect((await app.get(`/${key}?format=webp`)).statusCode).toBe(415);
      expect((await app.get(`/${key}`)).rawPayload.equals(readVideo(file))).toBe(true);
      expect(app.renderer.inspections).toBe(inspections);
      const body = await requestMetadata(app, key);
      expect(body).toMatchObject({ transformable: false, placeholder: null });
      if (duration_s !== '-') expect(body.duration).toBe(Number(duration_s));
      if (body.kind !== 'file')
        expect(body.has_audio).toBe(/sound/.test(note) || file === 'truncated.mp4');
      if (poster_status === '200') expect(body).toMatchObject({ kind: 'video', frames: null });
      expect(app.renderer.renders).toBe(0);
    },
  );
});

async function requestMetadata({ requestAdmin }: TestApp, key: string) {
  return (await requestAdmin(`/metadata/${key}`, { headers: withToken })).json();
}
