import { expect, it } from 'vitest';
import { createClient } from '../../support/http/http-client.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

it('every response has an id, a hit too: that of its request, or a new one', async () => {
  const app = await useTestApp();
  app.originals.put('icons/1/ab', samples.jpeg);
  const client = createClient(await app.listen());
  const url = '/icons/1/ab.webp?size=16';
  const ids = new Set<string>();
  for (const outcome of ['fwd=miss', 'hit', 'hit']) {
    const response = await client(url);
    expect(response.header('cache-status')).toContain(`darkroom; ${outcome}`);
    ids.add(response.header('x-request-id'));
    const named = await client(url, { headers: { 'x-request-id': 'id.of-the_test' } });
    expect(named.header('x-request-id')).toBe('id.of-the_test');
  }
  expect([...ids]).toEqual(
    Array.from({ length: 3 }, () => expect.stringMatching(/^[\da-f-]{36}$/)),
  );
});
