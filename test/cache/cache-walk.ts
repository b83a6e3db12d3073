import { expect, vi } from 'vitest';
import { settle } from '../support/deferred.ts';
import { type Ask, type CacheModel, nameOf, noWork, type Truth, type Work } from './cache-model.ts';
import { dateOf, renderingOf } from './cache-ports.ts';
import type { Step, StepOf } from './cache-steps.ts';
import type { CacheWorld, Observed } from './cache-world.ts';
import type { Expected } from './expected-response.ts';

type At = 'origin' | 'render';

/** How much of a response is known beforehand. */
type Precision = 'exact' | 'joined' | 'some way';

/** Takes steps in a world, and holds what comes of each against a model. */
export class CacheWalk {
  readonly #world: CacheWorld;
  readonly #model: CacheModel;
  /** How often what was met, so that a run can show that it has tried enough. */
  readonly #met: Map<string, number>;
  #latest: Ask | undefined;

  constructor(world: CacheWorld, model: CacheModel, met: Map<string, number>) {
    this.#world = world;
    this.#model = model;
    this.#met = met;
  }

  async take(step: Step): Promise<void> {
    await this.#withTimers(() => this.#take(step));
    if ('ask' in step) this.#latest = step.ask;
    // What a change comes to is seen by who asks next.
    const again = step.do === 'ask' ? undefined : this.#latest;
    if (again !== undefined) await this.#withTimers(() => this.#ask({ ...again, as: 'get' }));
    expect(this.#world.ports.faults).toEqual([]);
    expect(this.#world.ports.openBodies).toBe(0);
  }

  /** Where something hangs, time passes by its deadline alone. */
  async #withTimers(work: () => Promise<void> | void): Promise<void> {
    const { store, truths } = this.#model;
    const isHanging = store === 'hangs' || truths.some(({ origin }) => origin === 'hangs');
    if (isHanging) vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await work();
      await settle();
    } finally {
      vi.useRealTimers();
    }
  }

  #take(step: Step): Promise<void> | void {
    switch (step.do) {
      case 'ask':
        return this.#ask(step.ask);
      case 'wait':
        return this.#wait(step);
      case 'change':
        return this.#change(step);
      case 'origin':
        this.#model.truth(step.original).origin = step.script;
        return;
      case 'renderer':
        this.#model.truth(step.original).render = step.script;
        return;
      case 'store':
        return this.#setStore(step);
      case 'purge':
        return this.#purge(step.ask, step.by);
      case 'upload':
        return this.#upload(step.original, step.replaces);
      case 'crowd':
        return this.#crowd(step);
      case 'burst':
        return this.#burst(step.asks.map((ask) => this.#possible({ ...ask, ...step })));
      case 'race':
        return this.#race(step);
    }
  }

  #wait({ which, offsetMs }: StepOf<'wait'>): void {
    const { deadlines, nowMs } = this.#model;
    const end = deadlines[which % deadlines.length] ?? nowMs + 1_000;
    this.#world.app.clock.advance(end + offsetMs - nowMs);
    this.#model.nowMs = end + offsetMs;
  }

  #change({ original, how, freshForMs }: StepOf<'change'>): void {
    const truth = this.#model.truth(original);
    truth.freshForMs = freshForMs;
    if (how === 'delete') truth.isThere = false;
    else if (how !== 'lifetime') this.#world.ports.replace(truth, how);
  }

  async #setStore({ script }: StepOf<'store'>): Promise<void> {
    if (script === 'forgets') {
      await this.#world.ports.store?.forgetAll();
      this.#model.emptyStore();
    } else {
      this.#model.store = script;
      this.#world.ports.store?.set(script);
    }
  }

  async #purge(ask: Ask, by: StepOf<'purge'>['by']): Promise<void> {
    const { status, body } = await this.#world.purge(ask, by);
    const { setup, store } = this.#model;
    const removed =
      by === 'others'
        ? { memory: 0, store: 0 }
        : this.#model.purge(ask.original, by === 'path' ? ask.variant : undefined);
    expect(status).toBe({ works: 200, fails: 502, hangs: 504 }[setup.hasStore ? store : 'works']);
    if (status === 200) expect(body).toEqual({ removed });
  }

  async #upload(original: number, replaces: boolean): Promise<void> {
    const truth = this.#model.truth(original);
    if (truth.place === 'site') return;
    const isRefused = truth.isThere && !replaces;
    expect(await this.#world.upload(truth, replaces)).toBe(isRefused ? 409 : 200);
    if (isRefused) return;
    if (replaces) this.#model.purge(original);
    else this.#model.noteNew(original);
  }

  #send(ask: Ask, signal?: AbortSignal): Promise<Observed | undefined> {
    const named = this.#model.conditionOf(ask);
    const tag = (named && this.#model.tags.get(this.#model.tagKey(ask, named))) ?? '"none"';
    const latest = this.#model.truth(ask.original).versions.at(-1);
    const headers = {
      ...{ get: {}, head: {}, range: { range: 'bytes=2-5' } },
      'has it': { 'if-none-match': tag },
      'had it': { 'if-none-match': `"x", ${tag}` },
      'has any': { 'if-none-match': '*' },
      dated: { 'if-modified-since': latest === undefined ? '' : dateOf(latest).toUTCString() },
    };
    return this.#world.ask(ask, headers[ask.as], signal);
  }

  async #ask(asked: Ask): Promise<void> {
    const ask = this.#possible(asked);
    const expected = this.#model.respond(ask);
    this.#check(ask, expected, await this.#send(ask));
    await this.#checkWork(ask, expected.work);
  }

  /** Of parts of another site's media, the model knows nothing. */
  #possible(ask: Ask): Ask {
    const isSite = this.#model.truth(ask.original).place === 'site';
    return ask.as === 'range' && isSite && ask.variant === 'untouched'
      ? { ...ask, as: 'get' }
      : ask;
  }

  /** Where a request can be held, if it can. */
  #gateFor({ work }: Expected, at: At = 'origin'): At | undefined {
    if (at === 'render' && work.renders > 0) return 'render';
    if (work.wholes + work.peeks > 0) return 'origin';
    return work.renders > 0 ? 'render' : undefined;
  }

  async #crowd({ ask, leaving, at: wantedAt }: StepOf<'crowd'>): Promise<void> {
    const at = this.#gateFor(this.#model.clone().respond(ask), wantedAt);
    if (at === undefined || this.#model.isPassedOn(ask)) return this.#ask(ask);
    const gate = this.#world.ports.hold(at);
    const clients = leaving.map((leaves) => {
      const hangUp = new AbortController();
      return { leaves, hangUp, response: this.#send(ask, hangUp.signal) };
    });
    await gate.reached;
    await settleAll();
    // What the end of a render comes to that nobody waits for is known of a success alone.
    const mayLeave = at === 'origin' || this.#model.truth(ask.original).render === 'succeeds';
    const gone = mayLeave ? clients.filter(({ leaves }) => leaves) : [];
    for (const { hangUp } of gone) hangUp.abort();
    await settleAll();
    // In the place of one that has begun and left, the next one goes on.
    const others: Precision = leaving[0] && mayLeave ? 'some way' : 'joined';
    const areAllGone = gone.length === clients.length;
    const late = areAllGone ? this.#send(ask) : undefined;
    await settleAll();
    gate.open();
    const expected = this.#model.respond(ask);
    for (const [index, client] of clients.entries()) {
      const response = await client.response;
      if (gone.includes(client)) expect(response).toBeUndefined();
      else this.#check(ask, expected, response, index === 0 ? 'exact' : others);
    }
    const precision = at === 'origin' ? 'exact' : 'joined';
    if (late !== undefined) this.#check(ask, expected, await late, precision);
    await this.#checkWork(ask, expected.work, areAllGone && at === 'origin');
    this.#count(areAllGone ? 'a crowd that left' : 'a crowd');
  }

  async #burst(asks: readonly Ask[]): Promise<void> {
    const [first] = asks;
    if (first === undefined) return;
    const { render, versions, isThere, origin } = this.#model.truth(first.original);
    const fresh = this.#model.freshVersion(first.original);
    const latest = versions.at(-1);
    const isInOrder =
      (fresh !== undefined && (!isThere || fresh.tag !== latest?.tag)) ||
      // What fails for one may come after the news to another that theirs is current.
      (asks.some(({ as }) => as !== 'get') && (latest?.picture === 0 || origin === 'cuts')) ||
      asks.some((ask) => this.#model.isPassedOn(ask)) ||
      render !== 'succeeds' ||
      this.#model.store !== 'works';
    const at = this.#gateFor(this.#model.clone().respond(first));
    if (isInOrder || at === undefined) {
      for (const ask of asks) await this.#ask(ask);
      return;
    }
    const gate = this.#world.ports.hold(at);
    const responses = asks.map((ask) => this.#send(ask));
    await gate.reached;
    await settleAll();
    gate.open();
    // What each of them would get, and cost, after the others.
    const expected = asks.map((ask) => this.#model.respond(ask));
    const atMost = expected.reduce((sum, { work }) => addWork(sum, work), noWork());
    for (const [index, ask] of asks.entries()) {
      const response = expected[index] ?? expect.fail();
      this.#check(ask, response, await responses[index], 'some way');
    }
    await settle();
    const work = this.#world.ports.takeWork();
    for (const name of workNames) expect(work[name], name).toBeLessThanOrEqual(atMost[name]);
    expect(work.wholes, 'reads of one original').toBeLessThanOrEqual(1);
    const names = new Set(asks.map(({ variant }) => nameOf(variant)));
    expect(work.renders).toBeLessThanOrEqual(names.size);
    this.#count('a burst');
  }

  async #race({ ask, at: wantedAt, event, isReplaced }: StepOf<'race'>): Promise<void> {
    const model = this.#model;
    const truth = model.truth(ask.original);
    const first = model.clone().respond(ask);
    const at = this.#gateFor(first, wantedAt);
    const isImpossible =
      truth.origin === 'hangs' ||
      model.store !== 'works' ||
      (event === 'upload' && truth.place === 'site') ||
      model.isPassedOn(ask);
    if (at === undefined || isImpossible) return this.#ask(ask);
    const gate = this.#world.ports.hold(at);
    const before = this.#send(ask);
    await gate.reached;
    const joins = event === 'others';
    if (event === 'upload') await this.#upload(ask.original, truth.isThere);
    else {
      if (isReplaced && !joins) {
        this.#world.ports.replace(truth);
        // And nothing is wrong with the new one.
        if (at === 'render' && !isLate(truth)) truth.render = 'succeeds';
        if (at === 'origin') truth.origin = 'responds';
      }
      await this.#purge(ask, event);
    }
    const second = model.respond(ask);
    const after = this.#send(ask);
    await settleAll();
    gate.open();
    const early = (await before) ?? expect.fail('a client that stayed has no response');
    if (joins) {
      this.#check(ask, first, early);
      this.#check(ask, first, await after, 'joined');
      await this.#checkWork(ask, first.work);
    } else {
      // What was begun before is neither kept nor served: the one that waited for it begins anew.
      this.#check(ask, second, await after);
      this.#check(ask, second, early, 'some way');
      await settle();
      const { renders, storeWrites } = this.#world.ports.takeWork();
      const [one, other] = [first.work, second.work];
      // What is too late for the light lane begins anew in the heavy one.
      const lanes = isLate(truth) ? 2 : 1;
      expect(renders).toBeLessThanOrEqual(lanes * (one.renders + 2 * other.renders));
      expect(storeWrites).toBeLessThanOrEqual(2 * other.storeWrites);
      expect(storeWrites).toBeGreaterThanOrEqual(other.storeWrites);
      await this.#ask({ ...ask, variant: 'large' });
    }
    this.#count(joins ? 'a race that is joined' : 'a race');
  }

  #check(
    ask: Ask,
    expected: Expected,
    observed: Observed | undefined,
    precision: Precision = 'exact',
  ): void {
    if (observed === undefined) throw new Error('a client that stayed has no response');
    const { status, headers, body } = observed;
    const cacheStatus = `darkroom; ${expected.cacheStatus}`;
    this.#count(`${expected.status} ${expected.cacheStatus}`);
    const seen = { status, cacheStatus: headers['cache-status'], stages: stagesOf(headers) };
    if (precision === 'exact') {
      expect(seen).toEqual({ status: expected.status, cacheStatus, stages: expected.stages });
    } else {
      const joined = cacheStatus.replace(
        /fwd=\w+(?:; (?:fwd-status=304|stored))*/,
        '$&; collapsed',
      );
      const isJoined = precision === 'joined' && !expected.isConcealed;
      expect(seen).toMatchObject({
        status: expected.status,
        ...(isJoined && { cacheStatus: joined }),
      });
    }
    if (precision !== 'some way') expect(headers['cache-control']).toBe(expected.cacheControl);
    const { version } = expected;
    if (version === undefined) return;
    const { tags } = this.#model;
    const key = this.#model.tagKey(ask, version);
    if (tags.has(key)) expect(headers.etag).toBe(tags.get(key));
    else expect([...tags.values()]).not.toContain(headers.etag);
    tags.set(key, String(headers.etag));
    const whole = renderingOf(version, ask.variant);
    const sent = status === 304 || ask.as === 'head' ? '' : whole.toString('latin1');
    expect(body.toString('latin1')).toBe(status === 206 ? sent.slice(2, 6) : sent);
    if (ask.as === 'head') expect(headers['content-length']).toBe(String(whole.length));
  }

  /** @param isTwice whether the origin was asked anew, since all had left before it responded */
  async #checkWork(ask: Ask, expected: Work, isTwice = false): Promise<void> {
    await settle();
    const work = this.#world.ports.takeWork();
    // What was too late for the light lane may begin anew in the heavy one.
    if (isLate(this.#model.truth(ask.original)) && expected.renders > 0) {
      expect([1, 2]).toContain(work.renders);
      work.renders = expected.renders;
    }
    if (isTwice) {
      const { wholes, peeks, storeReads } = expected;
      expect(work.wholes + work.peeks).toBeLessThanOrEqual(wholes + peeks + 1);
      expect(work.storeReads).toBeLessThanOrEqual(2 * storeReads);
      Object.assign(work, { wholes, peeks, storeReads });
    }
    expect(work).toEqual(expected);
  }

  #count(what: string): void {
    this.#met.set(what, (this.#met.get(what) ?? 0) + 1);
  }
}

const workNames = ['wholes', 'peeks', 'renders', 'storeReads', 'storeWrites'] as const;

function addWork(sum: Work, work: Work): Work {
  for (const name of workNames) sum[name] += work[name];
  return sum;
}

const isLate = ({ render }: Truth): boolean => render === 'is stopped' || render === 'is late';

function stagesOf(headers: Observed['headers']): readonly string[] {
  const entries = headers['server-timing']?.split(', ') ?? [];
  return entries.map((entry) => entry.split(';')[0] ?? '').sort();
}

/** Lets all that has come in get as far as it can. */
async function settleAll(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await settle();
}
