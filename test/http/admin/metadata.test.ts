import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import sharp from 'sharp';
import { thumbHashToAverageRGBA } from 'thumbhash';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  metricsSettings,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

async function start({ settings, ...options }: TestAppOptions = {}) {
  const app = await useTestApp({ ...options, settings: { ...metricsSettings, ...settings } });
  return {
    ...app,
    request: async (path: string, headers: Record<string, string> = withToken) => {
      const response = await app.requestAdmin(`/metadata/${path}`, { headers });
      return { status: response.statusCode, headers: response.headers, body: response.json() };
    },
  };
}

/** Photograph of noise, which cannot be compressed. */
function noise(widthPx: number, heightPx: number) {
  const create = { width: widthPx, height: heightPx, channels: 3 } as const;
  const gaussian = { type: 'gaussian', mean: 128, sigma: 60 } as const;
  return sharp({ create: { ...create, background: '#888', noise: gaussian } });
}

/** Shared by tests whose keys differ. */
const app = await start();

const nullFields = {
  ...{ width: null, height: null, animated: null, frames: null, duration: null },
  ...{ codec: null, has_audio: null, transformable: false },
  ...{ placeholder: null, placeholder_version: null, sha256: null },
};

describe('the metadata of an original', () => {
  it('has every field', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    const { status, headers, body } = await app.request('icons/1/ab?sha256=true');
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['content-type']).toMatch(/^application\/json/);
    const { width, height } = await sharp(samples.jpeg).metadata();
    expect(body).toEqual({
      key: 'icons/1/ab',
      etag: `"crc-${crc32(samples.jpeg)}"`, // as in the storage of tests
      size: samples.jpeg.length,
      content_type: 'image/jpeg',
      kind: 'image',
      ...{ width, height },
      ...{ animated: false, frames: 1, duration: null, codec: null, has_audio: null },
      transformable: true,
      placeholder: expect.stringMatching(/^[A-Za-z\d+/]{20,40}$/),
      placeholder_version: 1,
      sha256: hash('sha256', samples.jpeg),
    });
  });

  it('of an animation includes the number of frames and the sum of their delays', async () => {
    const app = await start({ settings: { MAX_FRAMES: '2' } });
    app.originals.put('attachments/1/2/a.gif', samples.animatedGif);
    const { pages = 0, delay = [] } = await sharp(samples.animatedGif).metadata();
    const { body } = await app.request('attachments/1/2/a.gif');
    const duration = delay.reduce((sum, delayMs) => sum + delayMs, 0) / 1000;
    expect(body).toMatchObject({ animated: true, duration });
    expect(pages).toBeGreaterThan(2);
    // Above the maximum number of frames, their number is unknown and the original cannot be rendered.
    expect(body).toMatchObject({ frames: null, transformable: false, placeholder: null });
    const other = await start();
    other.originals.put('attachments/1/2/a.gif', samples.animatedGif);
    const { body: whole } = await other.request('attachments/1/2/a.gif');
    expect(whole).toMatchObject({ frames: pages, transformable: true, placeholder_version: 1 });
  });

  it.each([
    ['an SVG', samples.svg, 'image/svg+xml'],
    ['nothing', Buffer.alloc(0), 'application/octet-stream'],
  ])('reports %s as a file', async (_, bytes, content_type) => {
    app.originals.put('attachments/1/2/clip.mp4', bytes);
    const body = { ...nullFields, size: bytes.length, content_type, kind: 'file' };
    expect(await app.request('attachments/1/2/clip.mp4')).toMatchObject({ status: 200, body });
  });

  it.each([
    // The headers of JPEG and WebP reveal a still; that of GIF does not reveal the number of frames.
    ['jpeg', samples.jpeg, { animated: false, frames: 1 }],
    ['webp', samples.webp, { animated: false, frames: 1 }],
    ['gif', samples.animatedGif, {}],
  ])(
    'of a damaged %s has the values of its header, and null for the rest',
    async (name, bytes, counted) => {
      const { width, pageHeight, height } = await sharp(bytes).metadata();
      app.originals.put('avatars/1/ab12', bytes.subarray(0, bytes.length * 0.7));
      const size = { width, height: pageHeight ?? height };
      const body = {
        ...nullFields,
        kind: 'image',
        content_type: `image/${name}`,
        ...size,
        ...counted,
      };
      expect(await app.request('avatars/1/ab12')).toMatchObject({ status: 200, body });
    },
  );

  it.each(['avif', 'heic'])('of a %s larger than memory comes from its header', async (brand) => {
    const { request, originals } = await start();
    const still = await noise(200, 100).avif({ effort: 0 }).toBuffer();
    still.write(brand, 8, 'latin1');
    originals.put('icons/1/ab', Buffer.concat([still, Buffer.alloc(2 ** 20)]));
    originals.put('icons/1/cd', Buffer.concat([still.subarray(0, 64), Buffer.alloc(2 ** 20)]));
    originals.alter = (opened) => ({ ...opened, sizeBytes: 2 ** 40 });
    const about = { kind: 'image', size: 2 ** 40, content_type: `image/${brand}` };
    const [intact, damaged] = [await request('icons/1/ab'), await request('icons/1/cd')];
    expect(intact.body).toMatchObject({
      ...nullFields,
      ...about,
      width: 200,
      height: 100,
      frames: 1,
      animated: false,
    });
    expect(damaged.body).toMatchObject({ ...nullFields, ...about });
  });

  it('of a damaged container depends on its first bytes', async () => {
    const box = (brand: string) =>
      Buffer.from(`\0\0\0\x18ftyp${brand}\0\0\0\0${brand}isom`, 'latin1');
    for (const [brand, detected] of [
      ['isom', { kind: 'video', animated: false, has_audio: null }],
      ['M4A ', { kind: 'audio', animated: null, has_audio: true }],
    ] as const) {
      app.originals.put(`attachments/1/2/${detected.kind}`, box(brand));
      const { body } = await app.request(`attachments/1/2/${detected.kind}`);
      expect(body).toMatchObject({ ...nullFields, ...detected });
    }
  });

  it.each([
    [200, 40, 90, 1],
    [30, 160, 220, 0.5],
  ])('has a placeholder with the colours and alpha: %j, %j, %j, %j', async (r, g, b, alpha) => {
    const create = { width: 300, height: 20, channels: 4, background: { r, g, b, alpha } } as const;
    app.originals.put('avatars/1/ab12', await sharp({ create }).png().toBuffer());
    const { body } = await app.request('avatars/1/ab12');
    const {
      r: red,
      g: green,
      b: blue,
      a,
    } = thumbHashToAverageRGBA(Buffer.from(body.placeholder, 'base64'));
    const differences = [255 * red - r, 255 * green - g, 255 * blue - b, 80 * (a - alpha)];
    expect(Math.max(...differences.map(Math.abs))).toBeLessThan(8);
  });
});

describe('the extraction of metadata', () => {
  it('reads at most three ranges and 256 KiB of a still', async () => {
    const app = await start();
    const large = noise(1000, 900);
    const rotated = large.clone().withMetadata({ orientation: 8 });
    const stills = {
      'a.jpg': await large.clone().jpeg({ quality: 95 }).toBuffer(),
      'a.png': await large.clone().png().toBuffer(),
      'a.webp': await rotated.webp({ lossless: true }).toBuffer(),
      'a.avif': await large.clone().avif({ quality: 90, effort: 0 }).toBuffer(),
    };
    for (const [name, bytes] of Object.entries(stills)) {
      const key = `attachments/1/2/${name}`;
      app.originals.put(key, bytes);
      expect(bytes.length, name).toBeGreaterThan(256 * 1024);
      const { body } = await app.request(`${key}?placeholder=false`);
      const size = name === 'a.webp' ? { width: 900, height: 1000 } : { width: 1000, height: 900 };
      expect(body, name).toMatchObject({ ...size, frames: 1, transformable: true });
      expect(app.originals.reads.get(key), name).toBeLessThanOrEqual(3);
      expect(app.originals.requestedBytes.get(key), name).toBeLessThanOrEqual(256 * 1024);
    }
    expect(app.renderer.renders).toBe(0);
  });

  it('is shared by concurrent requests, and done once for each version of an original', async () => {
    const store = new MemoryResultStore();
    const app = await start({ resultStore: store });
    const key = 'attachments/1/2/a.jpg';
    const first = await noise(400, 300).jpeg().toBuffer();
    app.originals.put(key, first);
    const responses = await Promise.all(Array.from({ length: 30 }, () => app.request(key)));
    expect(new Set(responses.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(app.renderer.renders).toBe(1);
    const reads = app.originals.reads.get(key) ?? 0;
    await app.request(key);
    expect(app.originals.reads.get(key)).toBe(reads + 1);
    expect(app.renderer.renders).toBe(1);
    app.originals.put(key, await noise(300, 400).jpeg().toBuffer());
    expect((await app.request(key)).body).toMatchObject({ width: 300, height: 400 });
    expect(app.renderer.renders).toBe(2);
    await expect.poll(() => store.writes).toBeGreaterThan(1);
    const other = await start({ resultStore: store });
    other.originals.put(key, first);
    expect((await other.request(key)).body).toEqual(responses[0]?.body);
    expect(other.renderer.renders).toBe(0);
    await sendToAdmin(app, '/purge', { assets: [key] });
    expect(store.paths).toEqual([]);
  });

  it('hashes complete files, up to the maximum size of an upload', async () => {
    const app = await start({ settings: { RELAY_MAX_BYTES: '500000' } });
    const bytes = Buffer.alloc(400_000, 'text of a file. ');
    app.originals.put('attachments/1/2/a.txt', bytes);
    app.originals.put('attachments/1/2/b.txt', Buffer.concat([bytes, bytes]));
    const digestOf = async (path: string) =>
      (await app.request(`attachments/1/2/${path}`)).body.sha256;
    expect(await digestOf('a.txt?sha256=true')).toBe(hash('sha256', bytes));
    expect(await digestOf('a.txt')).toBeNull();
    expect(await digestOf('b.txt?sha256=true')).toBeNull();
  });
});

describe('a request for metadata', () => {
  it.each([
    ['avatars/1/a_ab12', 200, 'avatars/1/ab12'],
    ['attachments/1/2/my%20photo%20%C3%A9.png?placeholder=false&x=1', 200, undefined],
    ['avatars/1/ab12?placeholder=1', 400, 'INVALID_FORM_BODY'],
    ['avatars/1/ab12?sha256=true&sha256=true', 400, 'INVALID_FORM_BODY'],
    ['avatars/1/ab12.webp', 400, 'INVALID_FORM_BODY'],
    ['attachments/1/2%2Fclip.mp4', 400, 'INVALID_FORM_BODY'],
    ['attachments/1/2/%zz', 400, 'INVALID_FORM_BODY'],
    ['attachments/1/..%2f..%2fx', 400, 'INVALID_FORM_BODY'],
    ['', 400, 'INVALID_FORM_BODY'],
    [`attachments/1/2/${'%41'.repeat(255)}`, 404, 'UNKNOWN_MEDIA'],
    [`attachments/1/2/${'a'.repeat(256)}`, 400, 'INVALID_FORM_BODY'],
    ['avatars/1/none', 404, 'UNKNOWN_MEDIA'],
  ])('%s returns %i %s', async (path, status, word) => {
    app.originals.put('avatars/1/ab12', samples.png);
    app.originals.put('attachments/1/2/my photo é.png', samples.png);
    const response = await app.request(path);
    expect(response.status).toBe(status);
    if (word !== undefined) expect(Object.values(response.body)).toContain(word);
    expect(response.headers['cache-control']).toBe('no-store');
  });

  it('is not limited by VIDEO_MAX_READ_BYTES', async () => {
    const app = await start({ settings: { VIDEO_MAX_READ_BYTES: '1' } });
    app.originals.put('attachments/1/2/clip.mp4', samples.mp4);
    app.originals.put('avatars/1/ab12', samples.png);
    for (const key of ['attachments/1/2/clip.mp4', 'avatars/1/ab12']) {
      expect((await app.request(`${key}?placeholder=false`)).status).toBe(200);
    }
    expect((await app.get('/attachments/1/2/clip.mp4?format=webp')).statusCode).toBe(422);
    expect(app.originals.openBodies).toBe(0);
  });

  it('is retried if it fails after a purge', async () => {
    const app = await start();
    app.originals.put('avatars/1/ab12', samples.png);
    let reads = 0;
    app.originals.alter = async (opened) => {
      reads += 1;
      if (reads > 1) return opened;
      await sendToAdmin(app, '/purge', { assets: ['avatars/1/ab12'] });
      throw new MediaError('ORIGIN_ERROR');
    };
    expect((await app.request('avatars/1/ab12?placeholder=false')).status).toBe(200);
    app.originals.alter = () => {
      throw new MediaError('ORIGIN_ERROR');
    };
    expect((await app.request('avatars/1/ab12?placeholder=false')).status).toBe(502);
  });

  it('returns a 500 if the storage fails', async () => {
    const app = await start();
    app.originals.failure = new Error('broken');
    const { status, body } = await app.request('avatars/1/ab12');
    expect([status, body.code]).toEqual([500, 'INTERNAL_ERROR']);
  });

  it.each([
    ['TRANSFORM_TIMEOUT', 504],
    ['OVERLOADED', 503],
    ['UNPROCESSABLE_MEDIA', 200],
    ['MEDIA_TOO_LARGE', 200],
  ] as const)(
    'returns the status for a placeholder that fails with %s: %i',
    async (code, expected) => {
      const app = await start({ renderer: { render: () => Promise.reject(new MediaError(code)) } });
      app.originals.put('avatars/1/ab12', samples.png);
      const { status, body } = await app.request('avatars/1/ab12');
      expect(status).toBe(expected);
      if (expected === 200) {
        expect(body).toMatchObject({ placeholder: null, frames: 1, transformable: false });
      }
    },
  );
});
