import { hash } from 'node:crypto';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  type ExternalAppOptions,
  signedPathOf,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import { type ServedFile, serveSparse } from '../../support/sites/serve-sparse.ts';
import { metricsSettings, sendToAdmin } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { readSample, samples, withDecoder } from '../../support/test-app.ts';
import {
  hasFfmpeg,
  memorySource,
  readVideo,
  sparseSource,
  withGap,
  withGapBeforeCues,
} from '../../support/videos.ts';

// Contract §8 and §12: posters of videos of other sites.

const HOUR_MS = 3_600_000;
const MIB = 2 ** 20;
const clip = readVideo('clip-h264.mp4');
const POSTER = 'format=webp';

async function usePosterApp({ settings, ...options }: ExternalAppOptions = {}) {
  const app = await useExternalApp({ settings: { ...withDecoder, ...settings }, ...options });
  return {
    ...app,
    serve: (path: string, source: ServedFile['source'], how: Partial<ServedFile> = {}) => {
      const headers = { etag: '"one"', 'content-type': 'text/plain' };
      const own = { hasRanges: true, hasLength: true, served: [], sentBytes: 0 };
      const file: ServedFile = { source, headers, ...own, ...how };
      app.site.handlers.set(path, serveSparse(file));
      return file;
    },
  };
}

const gaps = { '3 MB': 3_000_000, '300 MB': 300_000_000 } as const;
const layouts = {
  'an MP4 with its index first': (gap: number) =>
    withGap(readVideo('clip-faststart-601-full.mp4'), undefined, gap),
  'an MP4 with its index last': (gap: number) => withGap(clip, 'moov', gap),
  'a WebM with its cues last': (gap: number) => withGapBeforeCues(readVideo('clip-vp8.webm'), gap),
  'a Matroska with its cues last': (gap: number) =>
    withGapBeforeCues(readVideo('clip-av1.mkv'), gap),
};
const cases = Object.entries(layouts).flatMap(([layout, create]) =>
  Object.entries(gaps).map(([size, gap]) => [layout, size, create, gap] as const),
);

describe.skipIf(!hasFfmpeg)("another site's video", () => {
  test.each(cases)('is read in few ranges: %s, of %s', async (_layout, _size, create, gap) => {
    const { request, serve } = await usePosterApp();
    for (const [path, mostReads] of [
      ['/clip.mp4', 4],
      // The first range is requested as a complete response, which is then aborted.
      ['/clip', 5],
    ] as const) {
      const file = serve(path, create(gap));
      const { status, header, body } = await request(path, POSTER);
      expect([status, header('content-type')], path).toEqual([200, 'image/webp']);
      expect((await sharp(body).metadata()).width).toBe(240);
      expect(file.served.length).toBeLessThanOrEqual(mostReads);
      const ranges = file.served.filter((range) => range !== 'whole');
      expect(ranges.length).toBeGreaterThan(0);
      expect(file.served.length - ranges.length).toBe(path === '/clip' ? 1 : 0);
      const read = ranges.map((range) => range.split('-').map(Number));
      const bytes = read.reduce((sum, [first = 0, last = 0]) => sum + last + 1 - first, 0);
      expect(bytes).toBeLessThanOrEqual(256 * 1024);
    }
  });

  test.each(cases)(
    'is read from its start without ranges: %s, of %s',
    async (layout, _size, create, gap) => {
      const { request, serve } = await usePosterApp();
      const isWithin = gap < 24 * MIB || layout.includes('first');
      for (const [name, how] of Object.entries({
        'no-ranges': { hasRanges: false },
        'no-validator': { headers: {} },
        'weak-tag': { headers: { etag: 'W/"one"' } },
      })) {
        const file = serve(`/${name}.mp4`, create(gap), how);
        expect((await request(`/${name}.mp4`, POSTER)).status, name).toBe(isWithin ? 200 : 422);
        // Without a validator, further ranges may belong to another version.
        const parts = name === 'no-ranges' ? [] : ['0-65535'];
        expect(file.served, name).toEqual([...parts, 'whole']);
      }
    },
  );

  test.each([
    ['after 3 MB', 3_000_000, 200],
    ['after 300 MB', 300_000_000, 422],
  ])(
    'without a declared length has a poster if its index is within the limit: %s',
    async (_, gap, expected) => {
      const { request, serve } = await usePosterApp();
      const first = serve('/first.mp4', layouts['an MP4 with its index first'](gap), {
        hasRanges: false,
        hasLength: false,
      });
      expect((await request('/first.mp4', POSTER)).status).toBe(200);
      // Beyond the limit of 25 MiB, the sockets of both sides buffer some bytes.
      expect(first.sentBytes).toBeLessThan(150 * MIB);
      serve('/last.mp4', layouts['an MP4 with its index last'](gap), {
        hasRanges: false,
        hasLength: false,
      });
      expect((await request('/last.mp4', POSTER)).status).toBe(expected);
    },
  );

  test('without a strong tag is read in ranges if its date is a strong validator', async () => {
    const { request, serve } = await usePosterApp();
    const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
    const source = layouts['an MP4 with its index last'](30_000_000);
    const strong = serve('/strong.mp4', source, { headers: { 'last-modified': date } });
    expect((await request('/strong.mp4', POSTER)).status).toBe(200);
    expect(strong.served).not.toContain('whole');
    // The file may have changed twice within this second.
    const weak = serve('/weak.mp4', source, { headers: { 'last-modified': date, date } });
    expect((await request('/weak.mp4', POSTER)).status).toBe(422);
    expect(weak.served).toContain('whole');
  });

  test('gets the same 502 as any failure if it is replaced during each read, and nothing is cached', async () => {
    const resultStore = new MemoryResultStore();
    const { request, site, serve } = await usePosterApp({ resultStore });
    const file = serve('/clip.mp4', layouts['an MP4 with its index last'](3_000_000));
    const handle = serveSparse(file);
    let version = 0;
    site.handlers.set('/clip.mp4', (request, response) => {
      handle(request, response);
      version += 1;
      file.headers = { etag: `"${version}"` };
    });
    site.handlers.set('/broken.jpg', (_request, response) => void response.writeHead(500).end());
    const replaced = await request('/clip.mp4', POSTER);
    const broken = await request('/broken.jpg', POSTER);
    expect([replaced.status, replaced.body.toString()]).toEqual([502, broken.body.toString()]);
    const namesOf = ({ headers }: typeof replaced) => Object.keys(headers).sort();
    expect(namesOf(replaced)).toEqual(namesOf(broken));
    expect(replaced.header('cache-status')).toBe(broken.header('cache-status'));
    expect(resultStore.paths).toEqual([]);
    site.handlers.set('/clip.mp4', (request, response) => {
      handle(request, response);
      file.headers = { etag: '"last"' };
    });
    expect((await request('/clip.mp4', POSTER)).status).toBe(200);
  });

  test.each([
    ['a part of another version', { 'content-range': 'bytes 0-9/99', 'content-length': '10' }],
    ['an encoded part', { 'content-encoding': 'gzip' }],
  ])('returns 502 if the site sends %s', async (_, headers) => {
    const { request, site, serve } = await usePosterApp();
    const handle = serveSparse(
      serve('/clip.mp4', layouts['an MP4 with its index last'](3_000_000)),
    );
    let requests = 0;
    site.handlers.set('/clip.mp4', (request, response) => {
      requests += 1;
      if (requests === 1) handle(request, response);
      else response.writeHead(206, { etag: '"one"', ...headers }).end('0123456789');
    });
    expect((await request('/clip.mp4', POSTER)).status).toBe(502);
    expect((await request('/clip.mp4', 'format=png')).status).toBe(502);
    expect(requests).toBe(2);
  });

  test('takes one fetch and one render for concurrent requests, and none while it is fresh', async () => {
    const { get, renderer, serve, clock, urlOf } = await usePosterApp();
    const file = serve('/clip.mp4', withGap(clip, 'moov', 3_000_000));
    const path = signedPathOf(urlOf('/clip.mp4'), POSTER);
    const crowd = await Promise.all(Array.from({ length: 20 }, () => get(path)));
    expect(new Set(crowd.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
    expect(renderer).toMatchObject({ inspections: 1, renders: 1 });
    const reads = file.served.length;
    clock.advance(HOUR_MS - 1);
    expect((await get(path)).headers['cache-status']).toBe('darkroom; hit');
    expect(file.served.length).toBe(reads);
    // Metadata is cached for another size, but bytes are not.
    expect((await get(`${path}&width=99`)).statusCode).toBe(200);
    expect(renderer).toMatchObject({ inspections: 1, renders: 2 });
    expect(file.served.length).toBeGreaterThan(reads);
  });

  test('is revalidated without a transform, and served for a day while its site fails', async () => {
    const { request, clock, renderer, serve, site } = await usePosterApp();
    const file = serve('/clip.mp4', withGap(clip, 'moov', 3_000_000));
    const first = await request('/clip.mp4', POSTER);
    const etag = first.header('etag');
    expect(first.header('cache-control')).toBe('public, max-age=3600');
    clock.advance(HOUR_MS);
    file.served.length = 0;
    const again = await request('/clip.mp4', POSTER, { headers: { 'if-none-match': etag } });
    expect([again.status, file.served, renderer.renders]).toEqual([304, ['304'], 1]);
    clock.advance(HOUR_MS);
    site.handlers.set('/clip.mp4', (_request, response) => void response.writeHead(500).end());
    const stale = await request('/clip.mp4', POSTER);
    expect([stale.status, stale.body.equals(first.body)]).toEqual([200, true]);
    expect(stale.header('cache-status')).toContain('detail=stale-if-error');
    // A new version, also one of the same length.
    clock.advance(HOUR_MS);
    const source = withGap(readVideo('clip-h264.mp4'), 'moov', 3_000_000);
    serve('/clip.mp4', source, { headers: { etag: '"two"' } });
    const replaced = await request('/clip.mp4', POSTER);
    expect([replaced.status, replaced.header('etag') === etag]).toEqual([200, false]);
  });

  test('without validators is a new version if its first bytes differ', async () => {
    const { request, clock, serve } = await usePosterApp();
    const black = readVideo('black-start.mp4');
    const sizeBytes = Math.max(clip.length, black.length);
    const tagOf = async (video: Buffer) => {
      serve('/clip.mp4', sparseSource(sizeBytes, [[0, video]]), { headers: {} });
      clock.advance(HOUR_MS);
      return (await request('/clip.mp4', POSTER)).header('etag');
    };
    const tag = await tagOf(clip);
    expect(tag).not.toBe('');
    expect(await tagOf(clip)).toBe(tag);
    expect(await tagOf(black)).not.toBe(tag);
  });

  test('has the default quality high if its name is that of a video', async () => {
    const { request, serve } = await usePosterApp();
    for (const [path, same] of [
      ['/clip.mp4', 'high'],
      ['/clip', 'lossless'],
    ] as const) {
      serve(path, memorySource(clip));
      const [absent, named] = await Promise.all([
        request(path, POSTER),
        request(path, `${POSTER}&quality=${same}`),
      ]);
      expect(absent.body.equals(named.body), path).toBe(true);
    }
  });

  test('without a format is sent unchanged, or rejected if a size or quality needs a render', async () => {
    const { request, serve } = await usePosterApp();
    serve('/clip.mp4', memorySource(clip));
    for (const query of ['', 'quality=high', 'quality=lossless', 'animated=true']) {
      const { status, body } = await request('/clip.mp4', query);
      expect([status, body.equals(clip)], query).toEqual([200, true]);
    }
    for (const query of ['width=100', 'height=100', 'quality=low']) {
      expect((await request('/clip.mp4', query)).status, query).toBe(415);
    }
  });

  test('is detected by its bytes, like pictures', async () => {
    const { request, serve } = await usePosterApp();
    for (const [name, bytes, expected] of [
      ['photo.mp4', samples.jpeg, 200],
      ['large-photo.mp4', readSample('attachments/1/12/red-panda.jpg'), 200],
      ['clip.png', clip, 200],
      ['voice.mp4', readVideo('voice.ogg'), 415],
      ['page.mp4', samples.html, 415],
      ['empty.mp4', Buffer.alloc(0), 415],
      ['cut.mp4', readVideo('truncated.mp4'), 422],
    ] as const) {
      for (const hasRanges of [true, false]) {
        const path = `/${hasRanges}/${name}`;
        serve(path, memorySource(bytes), { hasRanges });
        expect((await request(path, `${POSTER}&width=50`)).status, path).toBe(expected);
      }
    }
  });

  test('is not requested again if it is an image that is too large', async () => {
    const { request, site } = await usePosterApp({ settings: { MAX_ORIGINAL_BYTES: '10000' } });
    site.serve('/photo.jpg', readSample('attachments/1/12/red-panda.jpg'), { etag: '"one"' });
    expect((await request('/photo.jpg', POSTER)).status).toBe(422);
    expect(site.requests.length).toBe(1);
  });

  test('is fetched once, regardless of its name, from a site without ranges and validators', async () => {
    const { request, serve, site } = await usePosterApp();
    for (const path of ['/clip.mp4', '/clip']) {
      serve(path, memorySource(clip), { hasRanges: false, headers: {} });
      site.requests.length = 0;
      expect((await request(path, POSTER)).status, path).toBe(200);
      expect(site.requests.length, path).toBe(1);
    }
  });

  test('reads no more bytes than are allowed', async () => {
    const settings = { VIDEO_MAX_READ_BYTES: '1048576' };
    const { request, serve } = await usePosterApp({ settings });
    for (const hasRanges of [true, false]) {
      const large = withGap(clip, undefined, 4_000_000);
      const path = `/${hasRanges}.mp4`;
      const index = Buffer.from(clip);
      index.writeUInt32BE(
        clip.length - clip.indexOf('moov') + 4 + 4_000_000,
        clip.indexOf('moov') - 4,
      );
      const source = sparseSource(large.sizeBytes, [[0, index]]);
      serve(path, source, { hasRanges });
      expect((await request(path, POSTER)).status).toBe(422);
    }
  });

  test('is checked by the address guard at each read', async () => {
    const { request, site, serve, dialled, resolver } = await usePosterApp();
    const handle = serveSparse(serve('/clip.mp4', withGap(clip, 'moov', 3_000_000)));
    let requests = 0;
    site.handlers.set('/clip.mp4', (request, response) => {
      requests += 1;
      resolver.set('site.test', ['10.0.0.1']);
      // The next read needs a new connection.
      response.shouldKeepAlive = false;
      handle(request, response);
    });
    expect((await request('/clip.mp4', POSTER)).status).toBe(502);
    expect([requests, new Set(dialled)]).toEqual([1, new Set(['127.0.0.1'])]);

    resolver.set('site.test', ['127.0.0.1']);
    site.handlers.set('/moved.mp4', (request, response) => {
      if (request.headers['if-range'] === undefined) handle(request, response);
      else response.writeHead(302, { location: 'http://10.0.0.1/clip.mp4' }).end();
    });
    expect((await request('/moved.mp4', POSTER)).status).toBe(502);
    expect(new Set(dialled)).toEqual(new Set(['127.0.0.1']));
    expect(site.requests.every(({ headers }) => headers['cdn-loop'] !== undefined)).toBe(true);
  });

  test('returns 504 if it stalls, which is remembered for the site', async () => {
    const { request, site } = await usePosterApp({ limits: { bodyTimeoutMs: 300 } });
    let requests = 0;
    for (const path of ['/parts.mp4', '/whole.mp4']) {
      site.handlers.set(path, ({ headers }, response) => {
        requests += 1;
        const range = { 'content-range': `bytes 0-65535/3000000`, 'content-length': '65536' };
        const isPart = path === '/parts.mp4' && headers.range !== undefined;
        response.writeHead(isPart ? 206 : 200, { etag: '"one"', ...(isPart && range) });
        response.write(clip.subarray(0, 100));
      });
      expect((await request(path, POSTER)).status).toBe(504);
      expect((await request(path, `${POSTER}&width=9`)).status).toBe(504);
    }
    expect(requests).toBe(2);
  });

  test('keeps no connection after its poster', async () => {
    const { request, serve, requestUrl, urlOf } = await usePosterApp();
    for (let index = 0; index < 6; index += 1) {
      serve(`/${index}.mp4`, withGap(clip, undefined, 300_000_000), { hasRanges: false });
      expect((await request(`/${index}.mp4`, POSTER)).status).toBe(200);
    }
    expect((await requestUrl(urlOf('/0.mp4'), `${POSTER}&width=20`)).status).toBe(200);
  });
});

describe.skipIf(!hasFfmpeg)('blocks of another site’s video', () => {
  const useBlockApp = async (settings: Readonly<Record<string, string>> = {}) => {
    const { path } = await useTemporaryDirectory();
    const list = { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
    return usePosterApp({ settings: { ...metricsSettings, ...list, ...settings } });
  };
  const sha256 = [hash('sha256', clip)];
  const other = [hash('sha256', samples.text)];

  test.each([true, false])('apply by digest, with ranges: %s', async (hasRanges) => {
    const app = await useBlockApp();
    await sendToAdmin(app, '/blocks', { sha256 });
    for (const path of ['/clip.mp4', '/clip']) {
      const file = app.serve(path, memorySource(clip), { hasRanges });
      expect((await app.request(path, POSTER)).status).toBe(451);
      expect((await app.request(path, `${POSTER}&width=20`)).status).toBe(451);
      expect(app.renderer.renders).toBe(0);
      // Digest of the bytes that would be rendered.
      expect(file.served.at(-1)).toBe('whole');
    }
  });

  test('check the rendered bytes, not those of an earlier read', async () => {
    const app = await useBlockApp();
    const innocentClip = readVideo('black-start.mp4');
    const sizeBytes = Math.max(clip.length, innocentClip.length);
    const blocked = sparseSource(sizeBytes, [[0, clip]]);
    await sendToAdmin(app, '/blocks', {
      sha256: [hash('sha256', await blocked.read(0, sizeBytes))],
    });
    const innocent = sparseSource(sizeBytes, [[0, innocentClip]]);
    const file = app.serve('/clip.mp4', innocent);
    expect((await app.request('/clip.mp4', POSTER)).status).toBe(200);
    file.source = blocked;
    expect((await app.request('/clip.mp4', `${POSTER}&width=20`)).status).toBe(451);
  });

  test('that are posted later remove existing posters', async () => {
    const app = await useBlockApp();
    app.serve('/clip.mp4', memorySource(clip));
    expect((await app.request('/clip.mp4', POSTER)).status).toBe(200);
    await sendToAdmin(app, '/blocks', { sha256: other });
    expect((await app.request('/clip.mp4', POSTER)).status).toBe(200);
    await sendToAdmin(app, '/blocks', { sha256 });
    expect((await app.request('/clip.mp4', POSTER)).status).toBe(451);
  });

  test('apply by URL, also in redirects', async () => {
    const app = await useBlockApp();
    app.serve('/clip.mp4', memorySource(clip));
    app.site.redirect('/there.mp4', app.urlOf('/clip.mp4'));
    expect((await app.request('/there.mp4', POSTER)).status).toBe(200);
    await sendToAdmin(app, '/blocks', { external: [app.urlOf('/clip.mp4')] });
    expect((await app.request('/clip.mp4', POSTER)).status).toBe(451);
    expect((await app.request('/there.mp4', POSTER)).status).toBe(451);
  });

  test('apply to a large video once its digest is known', async () => {
    const app = await useBlockApp({ MAX_ORIGINAL_BYTES: '100000' });
    const large = Buffer.concat([clip, Buffer.alloc(200_000)]);
    large.writeUInt32BE(200_000, clip.length);
    large.write('free', clip.length + 4, 'latin1');
    await sendToAdmin(app, '/blocks', { sha256: [hash('sha256', large)] });
    let width = 0;
    for (const [name, how] of Object.entries({
      tagged: {},
      whole: { hasRanges: false },
      untagged: { headers: {} },
    })) {
      app.serve(`/${name}.mp4`, memorySource(large), how);
      const statusOf = async () => {
        width += 1;
        return (await app.request(`/${name}.mp4`, `${POSTER}&width=${width}`)).status;
      };
      await expect.poll(statusOf, { message: name }).toBe(451);
    }
  });
});

test('a video of another site has no poster without a decoder', async () => {
  const { request, site } = await useExternalApp();
  site.serve('/clip.mp4', clip);
  expect((await request('/clip.mp4', POSTER)).status).toBe(415);
  expect((await request('/clip.mp4')).body.equals(clip)).toBe(true);
});
