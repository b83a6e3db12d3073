import { expect, test } from 'vitest';
import type { Ask } from '../support/http/http-client.ts';
import { readSample } from '../support/test-app.ts';
import { useStack } from './stack.ts';

/** Requests that a client has. One comes back in six hours. */
const REQUESTS = 4;

const stack = await useStack({
  RATE_LIMIT_REQUESTS: String(REQUESTS),
  RATE_LIMIT_WINDOW_SECONDS: '86400',
  TRUST_PROXY: '127.0.0.1',
});

/** A new address of this machine for each client. */
let clients = 1;
function newClient(): { readonly address: string; readonly ask: Ask } {
  clients += 1;
  const address = `127.0.0.${clients}`;
  return { address, ask: stack.connect(address) };
}

/** Puts one icon under a name that nobody has asked for yet: its small render is charged. */
const icon = readSample('icons/1/ab12');
let icons = 0;
async function newTarget(): Promise<string> {
  icons += 1;
  await stack.put(`icons/9/ic${icons}`, icon);
  return `/icons/9/ic${icons}.webp?size=80`;
}

/** Has a client ask until it is refused. */
async function exhaust(ask: Ask): Promise<void> {
  while ((await ask(await newTarget())).status !== 429);
}

test('rate limits count a client by its own address, whatever X-Forwarded-For it sends', async () => {
  const [one, other] = [newClient(), newClient()];
  await exhaust(one.ask);
  const headers = { 'X-Forwarded-For': other.address };
  const refused = await one.ask(await newTarget(), { headers });
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.body.toString())).toMatchObject({ code: 'RATE_LIMITED' });
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(0);
  expect(refused.header('x-ratelimit-limit')).toBe(String(REQUESTS));
  expect(refused.header('cache-control')).toBe('no-store');
  expect(refused.header('cache-status')).toBe('darkroom; fwd=miss, nginx; fwd=uri-miss');

  expect((await other.ask(await newTarget())).status).toBe(200);
  // All kinds of locations pass the address on, and nothing of what the client wrote.
  for (const target of [
    await newTarget(),
    '/attachments/1/1/country-lane.jpg',
    '/attachments/1/1/country-lane.jpg?width=64',
    '/avatars/1/ab12.webp?size=63',
  ]) {
    stack.relay.requests.length = 0;
    await other.ask(target, { headers: { 'X-Forwarded-For': '203.0.113.7' } });
    for (const request of stack.relay.requests) {
      expect(request.headers['x-forwarded-for'], target).toBe(other.address);
    }
    expect(stack.relay.requests.length).toBeGreaterThan(0);
  }
});

test('a 429 is neither cached nor sent to others that wait for the same response', async () => {
  const one = newClient();
  await exhaust(one.ask);
  const target = await newTarget();
  stack.relay.requests.length = 0;
  const release = stack.relay.hold();
  const refused = one.ask(target);
  await expect.poll(() => stack.relay.requestsOf(target.split('?')[0] ?? '')).toHaveLength(1);
  // nginx has them wait for the first one.
  const others = Array.from({ length: 5 }, () => newClient().ask(target));
  release();
  expect((await refused).status).toBe(429);
  for (const response of await Promise.all(others)) expect(response.status).toBe(200);
  const forwarded = stack.relay.requests.map(({ status }) => status);
  expect(forwarded.filter((status) => status === 429)).toEqual([429]);
  expect(stack.relay.requests.filter(({ isRendered }) => isRendered)).toHaveLength(1);
  // What is there is for all.
  expect(await one.ask(target)).toMatchObject({ status: 200, nginx: 'hit' });
});
