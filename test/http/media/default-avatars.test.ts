import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readImageFacts } from '../../../src/formats/read-image-facts.ts';
import { commonHeaders } from '../../support/http/raw-http.ts';
import { shareTestApp, useTestApp } from '../../support/test-app.ts';

const app = shareTestApp();

describe('a default avatar', () => {
  it.each([0, 1, 2, 3, 4, 5])('%i is a PNG of its own, shipped with the service', async (index) => {
    const { statusCode, headers, rawPayload } = await app.get(`/avatars/${index}.png`);
    expect(statusCode).toBe(200);
    const file = new URL(`../../../src/default-avatars/${index}.png`, import.meta.url);
    expect(rawPayload.equals(readFileSync(file))).toBe(true);
    expect(readImageFacts(rawPayload)).toMatchObject({ format: 'png', isClean: true });
    expect(headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(rawPayload.length),
      'cache-control': 'public, max-age=86400',
      'accept-ranges': 'bytes',
      'cache-status': 'darkroom; hit',
      ...commonHeaders,
    });
    expect(headers).not.toHaveProperty('content-disposition');
    expect(headers).not.toHaveProperty('server-timing'); // it enters no stage
  });

  it('differs from every other, and asks neither origin nor renderer', async () => {
    const responses = await Promise.all(
      [0, 1, 2, 3, 4, 5].map((index) => app.get(`/avatars/${index}.png`)),
    );
    expect(new Set(responses.map(({ headers }) => headers.etag)).size).toBe(6);
    expect(app.originals.reads.size).toBe(0);
    expect(app.renderer.renders).toBe(0);
  });

  it('is missing where its index is none of theirs', async () => {
    const response = await app.get('/avatars/6.png');
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ code: 'UNKNOWN_MEDIA' });
  });

  it('has a lifetime by configuration', async () => {
    const other = await useTestApp({ settings: { DEFAULT_AVATAR_MAX_AGE_SECONDS: '60' } });
    const { headers } = await other.get('/avatars/3.png');
    expect(headers['cache-control']).toBe('public, max-age=60');
  });
});
