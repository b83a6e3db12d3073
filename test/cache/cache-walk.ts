import { expect, vi } from 'vitest';
import { settle } from '../support/deferred.ts';
import { type CacheModel, type ModelRequest, nameOf, type Work } from './cache-model.ts';
import { dateOf, renderingOf } from './cache-ports.ts';
import type { Step, StepOf } from './cache-steps.ts';
import type { CacheWorld, Observed } from './cache-world.ts';
import type { Expected } from './expected-response.ts';

type At = 'origin' | 'render';

/** Extent to which a response can be predicted. */
type Precision = 'exact' | 'joined' | 'any';

/** Runs steps against the service, and compares each outcome with the model. `met` counts outcomes, as coverage. */
export function createWalk(world: CacheWorld, model: CacheModel, met: Map<string, number>) {
  const { ports } = world;
  let latest: ModelRequest | undefined;

  /** Runs `work`. If a port hangs, time advances only to the port's deadline. */
  async function withTimers(work: () => Promise<void> | void): Promise<void> {
    const { store, truths } = model;
    const isHanging = store === 'hangs' || truths.some(({ origin }) => origin === 'hangs');
    if (isHanging) vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      await work();
      await settle();
    } finally {
      vi.useRealTimers();
    }
  }

  const handlers: { readonly [Kind in Step['do']]: (step: StepOf<Kind>) => Promise<void> | void } =
    {
      request: ({ request }) => requestOnce(request),
      origin: ({ original, script }) =>
        void Object.assign(model.truth(original), { origin: script }),
      renderer: ({ original, script }) =>
        void Object.assign(model.truth(original), { render: script }),
      store: setStore,
      burst: ({ requests, original }) =>
        burst(requests.map((request) => withoutSiteRange({ ...request, original }))),
      wait,
      change,
      crowd,
      purge,
      race,
      upload,
    };

  function wait({ which, offsetMs }: StepOf<'wait'>): void {
    const { deadlines, nowMs } = model;
    const end = deadlines[which % deadlines.length] ?? nowMs + 1_000;
    world.app.clock.advance(end + offsetMs - nowMs);
    model.nowMs = end + offsetMs;
  }

  function change({ original, how, freshForMs }: StepOf<'change'>): void {
    const truth = model.truth(original);
    truth.freshForMs = freshForMs;
    if (how === 'delete') truth.exists = false;
    else if (how !== 'lifetime') ports.replace(truth, how);
  }

  function setStore({ script }: StepOf<'store'>): void {
    if (script === 'forgets') {
      ports.store?.clear();
      model.emptyStore();
    } else {
      model.store = script;
      ports.setStore(script);
    }
  }

  async function purge({ request, by }: Omit<StepOf<'purge'>, 'do'>): Promise<void> {
    const { statusCode, body } = await world.purge(request, by);
    const { setup, store } = model;
    const removed =
      by === 'others'
        ? { memory: 0, store: 0 }
        : model.purge(request.original, by === 'path' ? request.variant : undefined);
    const status = { works: 200, fails: 502, hangs: 504 }[setup.hasStore ? store : 'works'];
    expect(statusCode).toBe(status);
    if (status === 200) expect(JSON.parse(body)).toEqual({ removed });
  }

  async function upload({ original, replaces }: Omit<StepOf<'upload'>, 'do'>): Promise<void> {
    const truth = model.truth(original);
    if (truth.place === 'site') return;
    const isRefused = truth.exists && !replaces;
    expect(await world.upload(truth, replaces)).toBe(isRefused ? 409 : 200);
    if (isRefused) return;
    if (replaces) model.purge(original);
    else model.noteNew(original);
  }

  function send(request: ModelRequest, signal?: AbortSignal) {
    const named = model.conditionOf(request);
    const tag = (named && model.tags.get(model.tagKey(request, named))) ?? '"none"';
    const latest = model.truth(request.original).versions.at(-1);
    const headers = {
      get: {},
      head: {},
      range: { range: 'bytes=2-5' },
      'has it': { 'if-none-match': tag },
      'had it': { 'if-none-match': `"x", ${tag}` },
      'has any': { 'if-none-match': '*' },
      dated: { 'if-modified-since': latest === undefined ? '' : dateOf(latest).toUTCString() },
    };
    return world.request(request, headers[request.as], signal);
  }

  async function requestOnce(wanted: ModelRequest): Promise<void> {
    const request = withoutSiteRange(wanted);
    const expected = model.respond(request);
    check(request, expected, await send(request));
    await checkWork(expected.work);
  }

  /** Replaces a range of another site's media, which the model does not cover. */
  function withoutSiteRange(request: ModelRequest): ModelRequest {
    const isSite = model.truth(request.original).place === 'site';
    return request.as === 'range' && isSite && request.variant === 'untouched'
      ? { ...request, as: 'get' }
      : request;
  }

  /** Returns the stage at which a request can be paused. */
  function gateFor({ work }: Expected, at: At = 'origin'): At | undefined {
    if (at === 'render' && work.renders > 0) return 'render';
    if (work.fullReads + work.peeks > 0) return 'origin';
    return work.renders > 0 ? 'render' : undefined;
  }

  async function crowd({ request, leaving, at: wantedAt }: StepOf<'crowd'>): Promise<void> {
    const at = gateFor(model.clone().respond(request), wantedAt);
    if (at === undefined || model.isPassthrough(request)) return requestOnce(request);
    const gate = ports.pauseAt(at);
    const clients = leaving.map((leaves) => {
      const hangUp = new AbortController();
      return { leaves, hangUp, response: send(request, hangUp.signal) };
    });
    await gate.reached;
    await settle(4);
    // Without clients, only the outcome of a successful render is predictable.
    const mayLeave = at === 'origin' || model.truth(request.original).render === 'succeeds';
    const gone = mayLeave ? clients.filter(({ leaves }) => leaves) : [];
    for (const { hangUp } of gone) hangUp.abort();
    await settle(4);
    // If the first client leaves, the next one continues.
    const others: Precision = leaving[0] && mayLeave ? 'any' : 'joined';
    const areAllGone = gone.length === clients.length;
    const late = areAllGone ? send(request) : undefined;
    await settle(4);
    gate.open();
    const expected = model.respond(request);
    for (const [index, client] of clients.entries()) {
      const response = await client.response;
      if (gone.includes(client)) expect(response).toBeUndefined();
      else check(request, expected, response, index === 0 ? 'exact' : others);
    }
    const precision = at === 'origin' ? 'exact' : 'joined';
    if (late !== undefined) check(request, expected, await late, precision);
    await checkWork(expected.work, areAllGone && at === 'origin');
    count(areAllGone ? 'a crowd that left' : 'a crowd');
  }

  async function burst(requests: readonly ModelRequest[]): Promise<void> {
    const [first] = requests;
    if (first === undefined) return;
    const { render, versions, exists, origin } = model.truth(first.original);
    const fresh = model.freshVersion(first.original);
    const latest = versions.at(-1);
    const isInOrder =
      (fresh !== undefined && (!exists || fresh.tag !== latest?.tag)) ||
      // Another request may be served a 304 before this one fails.
      (requests.some(({ as }) => as !== 'get') && (latest?.picture === 0 || origin === 'cuts')) ||
      requests.some((request) => model.isPassthrough(request)) ||
      render !== 'succeeds' ||
      model.store !== 'works';
    const at = gateFor(model.clone().respond(first));
    if (isInOrder || at === undefined) {
      for (const request of requests) await requestOnce(request);
      return;
    }
    const gate = ports.pauseAt(at);
    const responses = requests.map((request) => send(request));
    await gate.reached;
    await settle(4);
    gate.open();
    // Predicts the responses in sequence.
    const expected = requests.map((request) => model.respond(request));
    for (const [index, request] of requests.entries()) {
      const response = expected[index] ?? expect.fail();
      check(request, response, await responses[index], 'any');
    }
    await settle();
    const work = ports.takeWork();
    for (const [name, done] of Object.entries(work)) {
      const atMost = expected.map((each) => each.work[name as keyof Work]);
      expect(done, name).toBeLessThanOrEqual(atMost.reduce((sum, most) => sum + most, 0));
    }
    expect(work.fullReads, 'reads of one original').toBeLessThanOrEqual(1);
    const names = new Set(requests.map(({ variant }) => nameOf(variant)));
    expect(work.renders).toBeLessThanOrEqual(names.size);
    count('a burst');
  }

  async function race({ request, at: wantedAt, event, isReplaced }: StepOf<'race'>): Promise<void> {
    const truth = model.truth(request.original);
    const first = model.clone().respond(request);
    const at = gateFor(first, wantedAt);
    const isImpossible =
      truth.origin === 'hangs' ||
      model.store !== 'works' ||
      (event === 'upload' && truth.place === 'site') ||
      model.isPassthrough(request);
    if (at === undefined || isImpossible) return requestOnce(request);
    const gate = ports.pauseAt(at);
    const before = send(request);
    await gate.reached;
    const joins = event === 'others';
    if (event === 'upload') await upload({ ...request, replaces: truth.exists });
    else {
      if (isReplaced && !joins) {
        ports.replace(truth);
        // The new version is intact.
        if (at === 'render') truth.render = 'succeeds';
        if (at === 'origin') truth.origin = 'responds';
      }
      await purge({ request, by: event });
    }
    const second = model.respond(request);
    const after = send(request);
    await settle(4);
    gate.open();
    const early = await before;
    if (joins) {
      check(request, first, early);
      check(request, first, await after, 'joined');
      await checkWork(first.work);
    } else {
      // Work from before a purge is discarded; its request starts again.
      check(request, second, await after);
      check(request, second, early, 'any');
      await settle();
      const { renders, storeWrites } = ports.takeWork();
      const [one, other] = [first.work, second.work];
      expect(renders).toBeLessThanOrEqual(one.renders + 2 * other.renders);
      expect(storeWrites).toBeLessThanOrEqual(2 * other.storeWrites);
      expect(storeWrites).toBeGreaterThanOrEqual(other.storeWrites);
      await requestOnce({ ...request, variant: 'large' });
    }
    count(joins ? 'a race that is joined' : 'a race');
  }

  function check(
    request: ModelRequest,
    expected: Expected,
    observed: Observed | undefined,
    precision: Precision = 'exact',
  ): void {
    if (observed === undefined) expect.fail('a client that stayed has no response');
    const { statusCode: status, headers, rawPayload: body } = observed;
    const cacheStatus = `darkroom; ${expected.cacheStatus}`;
    count(`${expected.status} ${expected.cacheStatus}`);
    const seen = { status, cacheStatus: headers['cache-status'], stages: stagesOf(headers) };
    const joined = cacheStatus.replace(/fwd=\w+(?:; (?:fwd-status=304|stored))*/, '$&; collapsed');
    const known = {
      exact: { cacheStatus, stages: expected.stages },
      joined: expected.isConcealed ? {} : { cacheStatus: joined },
      any: {},
    }[precision];
    expect(seen).toMatchObject({ status: expected.status, ...known });
    if (precision !== 'any') expect(headers['cache-control']).toBe(expected.cacheControl);
    const { version } = expected;
    if (version === undefined) return;
    const { tags } = model;
    const key = model.tagKey(request, version);
    if (tags.has(key)) expect(headers.etag).toBe(tags.get(key));
    else expect([...tags.values()]).not.toContain(headers.etag);
    tags.set(key, String(headers.etag));
    const complete = renderingOf(version, request.variant);
    const sent = status === 304 || request.as === 'head' ? '' : complete.toString('latin1');
    expect(body.toString('latin1')).toBe(status === 206 ? sent.slice(2, 6) : sent);
    if (request.as === 'head')
      expect(String(headers['content-length'])).toBe(String(complete.length));
  }

  /** @param isRepeated whether the origin was contacted twice, since all clients left before it responded */
  async function checkWork(expected: Work, isRepeated = false): Promise<void> {
    await settle();
    const work = ports.takeWork();
    if (isRepeated) {
      const { fullReads, peeks, storeReads } = expected;
      expect(work.fullReads + work.peeks).toBeLessThanOrEqual(fullReads + peeks + 1);
      expect(work.storeReads).toBeLessThanOrEqual(2 * storeReads);
      Object.assign(work, { fullReads, peeks, storeReads });
    }
    expect(work).toEqual(expected);
  }

  function count(what: string): void {
    met.set(what, (met.get(what) ?? 0) + 1);
  }

  return async (step: Step): Promise<void> => {
    await withTimers(() => handlers[step.do](step as never));
    if ('request' in step) latest = step.request;
    // The next request shows the effect of a change.
    const again = step.do === 'request' ? undefined : latest;
    if (again !== undefined) await withTimers(() => requestOnce({ ...again, as: 'get' }));
    expect(ports.faults).toEqual([]);
    expect(ports.openBodies).toBe(0);
  };
}

function stagesOf({ 'server-timing': timing }: Observed['headers']) {
  const entries = timing === undefined ? [] : String(timing).split(', ');
  return entries.map((entry) => entry.split(';')[0]).sort();
}
