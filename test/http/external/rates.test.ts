import { expect, test } from 'vitest';
import { useExternalApp } from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

test('a render of what another site has counts; what is passed on and what is remembered does not', async () => {
  const app = await useExternalApp({
    settings: { RATE_LIMIT_REQUESTS: '2', RATE_LIMIT_WINDOW_SECONDS: '86400' },
  });
  for (const path of ['/cat.jpg', '/dog.jpg']) app.site.serve(path, samples.jpeg, { etag: '"1"' });
  for (const width of [40, 50]) {
    expect((await app.ask('/cat.jpg', `width=${width}`)).status).toBe(200);
  }
  const refused = await app.ask('/cat.jpg', 'width=60');
  expect(refused.status).toBe(429);
  expect(refused.header('cache-control')).toBe('no-store');
  // What it costs is known: the site is not asked for that, not even whether it has changed.
  app.clock.advance(3_600_000);
  expect((await app.ask('/cat.jpg', 'width=60')).status).toBe(429);
  expect(app.site.requests).toHaveLength(1);
  // Of another picture it is not.
  expect((await app.ask('/dog.jpg', 'width=60')).status).toBe(429);
  expect(app.site.requests).toHaveLength(2);
  expect((await app.ask('/dog.jpg')).status).toBe(200);
  // It has ended to be current, and is not rendered anew.
  expect((await app.ask('/cat.jpg', 'width=40')).status).toBe(200);
  expect(app.renderer.renders).toBe(2);
});
