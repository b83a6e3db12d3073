import { expect, it } from 'vitest';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

it.each([
  ['a rendered asset', '/icons/1/ab.webp?size=16'],
  ['an asset passed through', '/icons/1/ab.jpg?size=480&quality=lossless'],
  ['a transformed attachment', '/attachments/1/2/p.jpg?width=16'],
  ['a passthrough attachment', '/attachments/1/2/p.jpg'],
  ['a default avatar', '/avatars/3.png'],
])('%s has a strong entity tag, the same on every server', async (_, url) => {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab', samples.jpeg);
  origin.put('attachments/1/2/p.jpg', samples.jpeg);
  const tags = await Promise.all(
    [1, 2].map(async () => (await (await useTestApp({ origin })).get(url)).headers.etag),
  );
  expect(tags[0]).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
  expect(tags[1]).toBe(tags[0]);
});
