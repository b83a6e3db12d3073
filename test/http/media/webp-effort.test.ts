import { expect, it } from 'vitest';
import { samples, useTestApp } from '../../support/test-app.ts';

/** What a service with this setting responds to the same request for the same original. */
async function respond(url: string, settings: Record<string, string>) {
  const app = await useTestApp({ settings });
  app.originals.put('icons/1/ab', samples.jpeg);
  const { statusCode, headers, rawPayload } = await app.get(url);
  expect(statusCode).toBe(200);
  return { etag: headers.etag, body: rawPayload };
}

const photo = '/icons/1/ab.webp?size=256';

it('the effort that is the default changes nothing', async () => {
  expect(await respond(photo, { WEBP_EFFORT: '4' })).toEqual(await respond(photo, {}));
});

it.each(['0', '2', '6'])(
  'another effort, %s, gives other bytes under another entity tag',
  async (effort) => {
    const [usual, other] = [
      await respond(photo, {}),
      await respond(photo, { WEBP_EFFORT: effort }),
    ];
    expect(other.etag).not.toBe(usual.etag);
    expect(other.body.equals(usual.body)).toBe(false);
  },
);

it('the effort is for WebP alone', async () => {
  const png = '/icons/1/ab.png?size=64';
  const [usual, other] = [await respond(png, {}), await respond(png, { WEBP_EFFORT: '0' })];
  expect(other.body.equals(usual.body)).toBe(true);
});
