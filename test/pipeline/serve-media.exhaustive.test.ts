import fc from 'fast-check';
import sharp from 'sharp';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { settle } from '../support/deferred.ts';
import {
  at,
  type OriginScript,
  type RenderScript,
  ScriptedPorts,
  type Turn,
} from '../support/scripted-ports.ts';
import { type TestApp, useTestApp } from '../support/test-app.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';

expectNoUnhandledRejections();

interface RequestPlan {
  readonly slot: number;
  /** `current` has the latest version, `outdated` the one before. */
  readonly kind: 'plain' | 'head' | 'current' | 'outdated';
  /** Its client hangs up some time after it has asked. */
  readonly leaves: boolean;
}

/** What happens to the original of a slot in one round. */
interface SlotPlan {
  readonly isReplaced: boolean;
  readonly origin: OriginScript;
  readonly render: RenderScript;
}

interface RoundPlan {
  readonly slots: readonly SlotPlan[];
  readonly requests: readonly RequestPlan[];
}

const SLOTS = 3;
const ROUNDS = 3;
const FIRST_BYTE_MS = 5_000;
const REVALIDATE_MS = 300_000;

const requestPlan: fc.Arbitrary<RequestPlan> = fc.record({
  slot: fc.nat(SLOTS - 1),
  kind: fc.constantFrom('plain', 'plain', 'head', 'current', 'outdated'),
  leaves: fc.boolean(),
});
const slotPlan: fc.Arbitrary<SlotPlan> = fc.record({
  isReplaced: fc.boolean(),
  origin: fc.oneof(
    fc.constantFrom<OriginScript[]>('responds', 'is deaf'),
    fc.constantFrom<OriginScript[]>('responds', 'fails', 'is gone', 'hangs', 'cuts'),
  ),
  render: fc.constantFrom<RenderScript[]>('succeeds', 'succeeds', 'times out', 'refuses'),
});
const roundPlan: fc.Arbitrary<RoundPlan> = fc.record({
  slots: fc.array(slotPlan, { minLength: SLOTS, maxLength: SLOTS }),
  requests: fc.array(requestPlan, { minLength: 1, maxLength: 16, size: 'max' }),
});

/** Pictures that all differ, by slot and version. */
let pictures: readonly (readonly Buffer[])[];
let ports: ScriptedPorts;
let app: TestApp;

beforeAll(async () => {
  const draw = (slot: number, version: number): Promise<Buffer> => {
    const background = { r: 60 * slot, g: 60 * version, b: 99 };
    return sharp({ create: { width: 64, height: 48, channels: 3, background } })
      .png()
      .toBuffer();
  };
  pictures = await Promise.all(
    Array.from({ length: SLOTS }, (_, slot) =>
      Promise.all(Array.from({ length: ROUNDS }, (_, version) => draw(slot, version))),
    ),
  );
});

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  ports = new ScriptedPorts();
  const { origin, renderer } = ports;
  app = await useTestApp({
    origin,
    renderer,
    settings: {
      WORKERS: '2',
      ORIGIN_FIRST_BYTE_TIMEOUT_MS: String(FIRST_BYTE_MS),
      // Deadlines pass where nothing else can happen; that of the queue is not meant to.
      QUEUE_TIMEOUT_MS: '600000',
    },
  });
});

afterEach(() => void vi.useRealTimers());

/** One original of one run. */
interface Slot {
  readonly index: number;
  readonly key: string;
  version: number;
  /** Whether the service has a result of this version. */
  isKept: 'yes' | 'perhaps' | 'no';
  /** Whether it may have this version of the original in memory. */
  mayBeRead: boolean;
  /** Whether it may have one of any version, to be served while the origin fails. */
  mayBeStale: boolean;
}

/** What one request came to; undefined where its client had gone. */
interface Received {
  readonly plan: RequestPlan;
  readonly status: number | undefined;
  readonly body: string;
  readonly cacheStatus: string;
}

const lastModifiedOf = (version: number): Date => new Date(Date.UTC(2024, 0, 2 + version));

function prepare(slot: Slot, { isReplaced, origin, render }: SlotPlan, round: number): void {
  if (isReplaced && round > 0) {
    slot.version += 1;
    slot.isKept = 'no';
    slot.mayBeRead = false;
  }
  const { key, version, index } = slot;
  const bytes = pictures[index]?.[version];
  if (bytes === undefined) throw new Error('there are not enough pictures');
  const lastModified = lastModifiedOf(version);
  ports.originals.set(key, { bytes, name: nameOf(slot), lastModified, origin, render });
}

function nameOf({ key, version }: Slot): string {
  return `${key} ${version}`;
}

function namesUpTo(slot: Slot): string[] {
  return Array.from({ length: slot.version + 1 }, (_, version) => nameOf({ ...slot, version }));
}

async function ask(plan: RequestPlan, { key, version }: Slot, turn: Turn): Promise<Received> {
  const { kind, leaves } = plan;
  const seen = kind === 'current' ? version : version - 1;
  await turn(`a client asks for ${key}`);
  const client = new AbortController();
  const asked = app.server.inject({
    method: kind === 'head' ? 'HEAD' : 'GET',
    url: `/${key}.webp?size=16`,
    headers: kind === 'plain' ? {} : { 'if-modified-since': lastModifiedOf(seen).toUTCString() },
    signal: client.signal,
  });
  if (leaves) void turn(`a client of ${key} hangs up`).then(() => client.abort());
  try {
    const { statusCode, body, headers } = await asked;
    return { plan, status: statusCode, body, cacheStatus: String(headers['cache-status']) };
  } catch (error) {
    if (client.signal.aborted) return { plan, status: undefined, body: '', cacheStatus: '' };
    throw error;
  }
}

/** Lets everything happen that has been scheduled, until all responses are there and all is quiet. */
async function playOut(
  scheduler: fc.Scheduler,
  breathes: Iterator<boolean>,
  responses: Promise<unknown>,
): Promise<void> {
  let isOver = false;
  responses.then(
    () => {
      isOver = true;
    },
    () => {
      isOver = true; // the caller gets the error
    },
  );
  for (let idle = 0; idle < 10 || !isOver; idle += 1) {
    while (scheduler.count() > 0) {
      idle = 0;
      await scheduler.waitOne();
      if (breathes.next().value === true) await settle();
    }
    await settle();
    // Nothing else can happen: time passes.
    if (idle === 20) vi.advanceTimersByTime(FIRST_BYTE_MS);
    if (idle === 60) throw new Error('a request waits for ever');
  }
}

/** Every status that a response may have. */
function statusesOf(
  { isKept, mayBeRead, mayBeStale }: Slot,
  plan: SlotPlan,
  { kind }: RequestPlan,
): readonly number[] {
  if (plan.origin === 'is gone') return [404];
  if (plan.origin === 'fails' || plan.origin === 'hangs') {
    // What was right when the origin could be asked last (RFC 5861), and nothing else.
    const last = kind === 'plain' ? [200] : [200, 304];
    if (isKept === 'yes') return last;
    const failure = plan.origin === 'fails' ? 502 : 504;
    return mayBeStale ? [...last, failure] : [failure];
  }
  const rendered = { succeeds: 200, 'times out': 504, refuses: 422 }[plan.render];
  const made = plan.origin !== 'cuts' ? [rendered] : mayBeRead ? [502, rendered] : [502];
  // What was refused just before is refused whatever the client has.
  if (kind === 'current') return plan.render === 'succeeds' ? [304] : [304, rendered];
  return isKept === 'yes' ? [200] : isKept === 'perhaps' ? [200, ...made] : made;
}

function check(slot: Slot, plan: SlotPlan, responses: readonly Received[]): void {
  for (const { plan: request, status, body } of responses) {
    if (status === undefined) continue;
    expect(statusesOf(slot, plan, request)).toContain(status);
    if (status !== 200) continue;
    const isStale = slot.isKept !== 'yes' && (plan.origin === 'fails' || plan.origin === 'hangs');
    const names = isStale ? namesUpTo(slot) : [nameOf(slot)];
    expect(request.kind === 'head' ? [''] : names).toContain(body);
  }
  if (plan.origin === 'is gone' && responses.some(({ status }) => status === 404)) {
    Object.assign(slot, { isKept: 'perhaps', mayBeStale: false });
  }
  if (plan.origin === 'fails' || plan.origin === 'hangs') return;
  if (plan.origin === 'responds' || plan.origin === 'is deaf') slot.mayBeRead = true;
  const isServed = responses.some(({ status }) => status === 200);
  const left = responses.filter(({ plan: { leaves } }) => leaves).length;
  const reads = ports.reads.get(slot.key) ?? 0;
  const renders = ports.renders.get(slot.key) ?? 0;
  // First whether it is what it was, then the whole.
  expect(reads).toBeLessThanOrEqual(2 * responses.length);
  // What takes too long for the light lane begins anew in the heavy one.
  const runs = plan.render === 'times out' ? 2 : 1;
  expect(renders).toBeLessThanOrEqual(runs * responses.length);
  const needsBody = responses.some(({ plan: { kind } }) => kind !== 'current');
  if (slot.isKept === 'yes' || !needsBody) expect(renders).toBe(0);
  if (isServed) {
    // Begun anew only where all had left, or had gone with the news that theirs is current.
    const current = responses.filter(({ status }) => status === 304).length;
    expect(reads).toBeLessThanOrEqual(2 * (1 + left + current));
    expect(renders).toBeLessThanOrEqual(1 + left);
    slot.isKept = 'yes';
    slot.mayBeStale = true;
  } else if (slot.isKept === 'no' && left > 0) {
    slot.isKept = 'perhaps'; // a client may have left in the moment it was done
    slot.mayBeStale = true;
  }
}

test('serves and refuses as it should, once per key, whichever clients leave and whatever fails', async () => {
  const statuses = new Set<number>();
  let collapsed = 0;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.infiniteStream(fc.boolean()),
      fc.array(roundPlan, { minLength: 1, maxLength: ROUNDS }),
      async (scheduler, breathes, rounds) => {
        run += 1;
        ports.originals.clear();
        ports.faults.length = 0;
        ports.turn = (what) => scheduler.schedule(Promise.resolve(), what);
        const slots = Array.from({ length: SLOTS }, (_, index): Slot => {
          return {
            index,
            key: `icons/${run}/slot${index}`,
            version: 0,
            isKept: 'no',
            mayBeRead: false,
            mayBeStale: false,
          };
        });
        for (const [round, plan] of rounds.entries()) {
          ports.reads.clear();
          ports.renders.clear();
          app.clock.advance(REVALIDATE_MS);
          const prepared = slots.map((slot, index) => ({ slot, plan: at(plan.slots, index) }));
          for (const it of prepared) prepare(it.slot, it.plan, round);
          const asked = plan.requests.map((it) => ask(it, at(slots, it.slot), ports.turn));
          const received = Promise.all(asked);
          await playOut(scheduler, breathes, received);
          const responses = await received;

          for (const it of prepared) {
            const own = responses.filter((response) => response.plan.slot === it.slot.index);
            check(it.slot, it.plan, own);
          }
          expect(ports.faults).toEqual([]);
          expect(ports.openBodies).toBe(0);
          for (const { status, cacheStatus } of responses) {
            if (status !== undefined) statuses.add(status);
            if (cacheStatus.includes('collapsed')) collapsed += 1;
          }
        }
      },
    ),
    { numRuns: 120 },
  );
  expect(app.log.errors).not.toContainEqual(expect.objectContaining({ code: 'INTERNAL_ERROR' }));
  // Or little would have been tried.
  expect([...statuses].sort()).toEqual([200, 304, 404, 422, 502, 504]);
  expect(collapsed).toBeGreaterThan(100);
});
