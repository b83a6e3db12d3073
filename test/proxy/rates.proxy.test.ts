import { expect, test } from 'vitest';
import { readSample } from '../support/test-app.ts';
import { useStack } from './stack.ts';

/** Requests that a client may send; one more is added every six hours. */
const REQUESTS = 4;

const stack = await useStack({
  RATE_LIMIT_REQUESTS: String(REQUESTS),
  RATE_LIMIT_WINDOW_SECONDS: '86400',
  TRUST_PROXY: '127.0.0.1',
});

/** Returns a new local address for each client. */
let clients = 1;
function newClient() {
  clients += 1;
  const address = `127.0.0.${clients}`;
  return { address, request: stack.connect(address) };
}

/** Stores an icon under a new name; its small render is charged. */
let icons = 0;
async function newTarget(): Promise<string> {
  icons += 1;
  await stack.put(`icons/9/ic${icons}`, readSample('icons/1/ab12'));
  return `/icons/9/ic${icons}.webp?size=80`;
}

/** Creates a client whose rate limit is exhausted. */
async function newExhausted() {
  const client = newClient();
  while ((await client.request(await newTarget())).status !== 429);
  return client;
}

test('rate limits count a client by its own address, and ignore its X-Forwarded-For', async () => {
  const [one, other] = [await newExhausted(), newClient()];
  const headers = { 'X-Forwarded-For': other.address };
  const refused = await one.request(await newTarget(), { headers });
  expect(refused.status).toBe(429);
  expect(refused.header('x-ratelimit-limit')).toBe(String(REQUESTS));
  expect(refused.header('cache-control')).toBe('no-store');
  expect(refused.header('cache-status')).toBe('darkroom; fwd=miss, nginx; fwd=uri-miss');
  expect((await other.request(await newTarget())).status).toBe(200);
  // All locations forward the address, and ignore the client's own header.
  for (const target of [
    await newTarget(),
    '/attachments/1/1/country-lane.jpg',
    '/attachments/1/1/country-lane.jpg?width=64',
    '/avatars/1/ab12.webp?size=63',
  ]) {
    stack.relay.requests.length = 0;
    await other.request(target, { headers: { 'X-Forwarded-For': '203.0.113.7' } });
    const addresses = stack.relay.requests.map(({ headers }) => headers['x-forwarded-for']);
    expect(new Set(addresses), target).toEqual(new Set([other.address]));
  }
});

test('a 429 is neither cached nor sent to others that wait for the same response', async () => {
  const one = await newExhausted();
  const target = await newTarget();
  stack.relay.requests.length = 0;
  const resume = stack.relay.pause();
  const refused = one.request(target);
  await expect.poll(() => stack.relay.requestsOf(target)).toHaveLength(1);
  // The other clients wait in nginx for the first request.
  const others = Array.from({ length: 5 }, () => newClient().request(target));
  resume();
  expect((await refused).status).toBe(429);
  for (const response of await Promise.all(others)) expect(response.status).toBe(200);
  const forwarded = stack.relay.requests.map(({ status }) => status);
  expect(forwarded.filter((status) => status === 429)).toEqual([429]);
  expect(stack.relay.requests.filter(({ isRendered }) => isRendered)).toHaveLength(1);
  // Every client gets a cached response, even above its limit.
  expect(await one.request(target)).toMatchObject({ status: 200, nginx: 'hit' });
});
