import { describe, expect, test } from 'vitest';
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
/** Light, but no trifle. */
const photo = readSample('splashes/1/ab12');
let icons = 0;
async function newTargets(count: number, original = icon): Promise<readonly string[]> {
  const names = Array.from({ length: count }, () => {
    icons += 1;
    return `icons/9/ic${icons}`;
  });
  await Promise.all(names.map((name) => stack.put(name, original)));
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

describe('behind nginx', () => {
  test('a client is its own address, whatever it writes into X-Forwarded-For', async () => {
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

  test('a 429 is neither kept nor given to others that wait for the same', async () => {
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

  /** What a person gets who asks for renders one after another: statuses, and how long it took, in milliseconds. */
  async function visit(ask: Ask, count: number) {
    const responses: { readonly status: number; readonly tookMs: number }[] = [];
    for (const target of await newTargets(count)) {
      const beganMs = performance.now();
      const { status } = await ask(target);
      responses.push({ status, tookMs: performance.now() - beganMs });
    }
    return responses;
  }
  type Visit = Awaited<ReturnType<typeof visit>>;

  /** Requests of the flood in each second: of what they ask for, all cores of the service could render half at most. */
  const FLOOD_PER_SECOND = 60;

  /**
   * Asks for something new all the time, each time for another client of some, until the function that is returned is
   * called.
   *
   * @returns the statuses that came of it
   */
  async function flood(asks: readonly Ask[]): Promise<() => Promise<readonly number[]>> {
    const targets = (await newTargets(60 * FLOOD_PER_SECOND, photo)).map((path) =>
      path.replace('size=80', 'size=600'),
    );
    const statuses: Promise<number>[] = [];
    const timer = setInterval(() => {
      const [target, ask] = [targets.pop(), asks[statuses.length % asks.length]];
      if (target === undefined || ask === undefined) return;
      statuses.push(ask(target).then(({ status }) => status));
    }, 1000 / FLOOD_PER_SECOND);
    return () => {
      clearInterval(timer);
      return Promise.all(statuses);
    };
  }

  const p99Of = (responses: Visit): number => {
    const times = responses.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
    return times[Math.ceil(times.length * 0.99) - 1] ?? 0;
  };
  const areServed = (responses: Visit): boolean => responses.every(({ status }) => status === 200);

  // Another process of the machine may take a core in one of the parts and not in the other: so they take turns, and
  // it is tried again. A flood that is felt is felt each time.
  const patiently = { retry: 3, timeout: 180_000 };

  test(
    'a flood of one is not felt by another: its p99 stays within twice its own',
    patiently,
    async () => {
      const [flooder, person] = [newClient(), newClient()];
      await exhaust(flooder.ask);
      await visit(person.ask, 10);
      const [alone, flooded]: [Visit, Visit] = [[], []];
      const statuses: number[] = [];
      for (let turn = 0; turn < 4; turn += 1) {
        alone.push(...(await visit(person.ask, 25)));
        const stop = await flood([flooder.ask]);
        flooded.push(...(await visit(person.ask, 25)));
        statuses.push(...(await stop()));
      }
      expect(new Set(statuses)).toEqual(new Set([429]));
      expect(statuses.length).toBeGreaterThan(20);
      expect([areServed(alone), areServed(flooded)]).toEqual([true, true]);
      expect(p99Of(flooded)).toBeLessThanOrEqual(2 * p99Of(alone));
    },
  );

  test(
    'the same flood of many, each within its share, would be: it takes longer, or is turned away',
    patiently,
    async () => {
      const person = newClient();
      const alone = await visit(person.ask, 25);
      const stop = await flood(Array.from({ length: 20 }, () => newClient().ask));
      const flooded = [...(await visit(person.ask, 20)), ...(await visit(person.ask, 5))];
      await stop();
      expect(areServed(alone)).toBe(true);
      expect(!areServed(flooded) || p99Of(flooded) > 2 * p99Of(alone)).toBe(true);
    },
  );
});
