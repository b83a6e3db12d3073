import { expect, it } from 'vitest';
import { createClient } from '../../support/http/http-client.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

it('a hit has an id only where its client has one: no line of the log could be found by another', async () => {
  const app = await useTestApp();
  app.originals.put('icons/1/ab', samples.jpeg);
  const client = createClient(await app.listen());
  const url = '/icons/1/ab.webp?size=16';
  expect((await client(url)).header('x-request-id')).not.toBe('');
  // The first hit reads the target, the second one finds it read.
  for (let time = 0; time < 2; time += 1) {
    const hit = await client(url);
    expect(hit.header('cache-status')).toBe('darkroom; hit');
    expect(hit.headers).not.toHaveProperty('x-request-id');
    const named = await client(url, { headers: { 'x-request-id': 'id.of-the_test' } });
    expect(named.header('x-request-id')).toBe('id.of-the_test');
  }
});
