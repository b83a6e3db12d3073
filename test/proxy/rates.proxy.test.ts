import { expect, test } from 'vitest';
import type { Ask } from '../support/http/http-client.ts';
import { readSample } from '../support/test-app.ts';
import { useStack } from './stack.ts';

/** Requests that a client has. One comes back in three and a half minutes: no test has to reckon with that. */
const REQUESTS = 400;

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

/** Paths that nobody has asked for yet: small renders, of one icon under many names. */
const icon = readSample('icons/1/ab12');
let icons = 0;
async function newTargets(count: number): Promise<readonly string[]> {
  const names = Array.from({ length: count }, () => {
    icons += 1;
    return `icons/9/ic${icons}`;
  });
  await Promise.all(names.map((name) => stack.put(name, icon)));
  return names.map((name) => `/${name}.webp?size=80`);
}

/** Has a client ask, several at a time, until it is refused. */
async function exhaust(ask: Ask): Promise<void> {
  const targets = [...(await newTargets(2 * REQUESTS))];
  let isRefused = false;
  const ever = async (): Promise<void> => {
    while (!isRefused) {
      const target = targets.pop();
      if (target === undefined) expect.fail('It was never refused.');
      isRefused = (await ask(target)).status === 429;
    }
  };
  await Promise.all([ever(), ever(), ever()]);
}

test('rate limits count a client by its own address, whatever X-Forwarded-For it sends', async () => {
  const [one, other] = [newClient(), newClient()];
  await exhaust(one.ask);
  const [first = '', second = '', third = ''] = await newTargets(3);
  const headers = { 'X-Forwarded-For': other.address };
  const refused = await one.ask(first, { headers });
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.body.toString())).toMatchObject({ code: 'RATE_LIMITED' });
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(0);
  expect(refused.header('x-ratelimit-limit')).toBe(String(REQUESTS));
  expect(refused.header('cache-control')).toBe('no-store');
  expect(refused.header('cache-status')).toBe('darkroom; fwd=miss, nginx; fwd=uri-miss');

  expect((await other.ask(second)).status).toBe(200);
  // All kinds of locations pass the address on, and nothing of what the client wrote.
  for (const target of [
    third,
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
  const [target = ''] = await newTargets(1);
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
