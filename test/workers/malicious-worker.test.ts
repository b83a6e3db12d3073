import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { isAlive, readerOf, type TestPool, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();
const startShared = usePools(afterAll);

const processIdIn = (reply: string): number => Number(reply.split(' ')[0]);

/** Returns the stream as the frame. */
const frames = {
  async *decode({ stream }: { readonly stream: Uint8Array }) {
    yield stream;
  },
};

const track = {
  codec: 'h264',
  codedSize: { widthPx: 192, heightPx: 144 },
  size: { widthPx: 256, heightPx: 144 },
  orientation: 6,
};
const facts = {
  kind: 'video',
  container: 'mp4',
  codec: 'avc1.640028',
  hasAudio: false,
  video: track,
};

const malformedFacts: [string, object][] = [
  ['no kind', { kind: undefined }],
  ['an unknown kind', { kind: 'image' }],
  ['an unknown container', { container: 'avi' }],
  ['a codec that is no name', { codec: '<script>' }],
  ['a codec of any length', { codec: 'a'.repeat(65) }],
  ['a duration that is no number', { durationS: '1' }],
  ['a duration before zero', { durationS: -1 }],
  ['sound that is no truth value', { hasAudio: 1 }],
  ['a track that is none', { video: [] }],
  ['a codec of the track that we do not decode', { video: { ...track, codec: 'toString' } }],
  ['a size without an edge', { video: { ...track, size: { widthPx: 1 } } }],
  ['a size that is no whole number', { video: { ...track, size: { widthPx: 1.5, heightPx: 1 } } }],
  ['an orientation that is none', { video: { ...track, orientation: 9 } }],
  ['an unknown fault', { fault: { code: 'OVERLOADED', reason: '' } }],
  ['a fault without a reason', { fault: { code: 'UNPROCESSABLE_MEDIA' } }],
  ['neither a fault nor a track', { video: undefined }],
];

/** Has a worker told to lie while it waits for what it reads. */
const tellAndWait = ({ sayByRanges }: TestPool, lie: string): Promise<string> =>
  sayByRanges(readerOf(`lie ${lie}`, () => new Promise(() => undefined)));

/** Ways to have a worker lie, and the lies. */
const lies: Readonly<
  Record<string, [(pool: TestPool, lie: string) => Promise<unknown>, string[]]>
> = {
  'its message': [
    ({ say }, lie) => say(`lie ${lie}`),
    [
      ...['unknown kind', 'no object', 'null', 'no json', 'unknown code', 'inherited code'],
      ...['no detail', 'body of a failure', 'no body', 'body in the header', 'no size'],
      ...['ready again', 'begun again', 'huge header', 'huge body', 'body over the bound'],
      ...['read too far', 'decode'], // of which a job with the whole original needs nothing
    ],
  ],
  'a request of a job that reads by ranges': [
    ({ sayByRanges }, lie) => sayByRanges(`lie ${lie}`),
    [
      ...['read too far', 'read nothing', 'read before the beginning', 'read no number'],
      'facts instead of a picture',
      ...['unknown codec', 'inherited codec', 'no frame size', 'frame without a width'],
      ...['edge over the bound', 'pixels over the bound'],
      ...['no stream', 'stream over the bound'],
    ],
  ],
  'what only renders may send': [
    ({ inspect }, lie) => inspect(`lie ${lie}`),
    ['decode', 'picture instead of facts'],
  ],
  'a message while it waits for a reply': [
    tellAndWait,
    ['read twice at once', 'respond while it reads'],
  ],
  'one frame more than eight': [({ sayByRanges }, lie) => sayByRanges(lie), ['decode 9 a']],
};

describe('a worker in the hands of an attacker', () => {
  let pool: TestPool;
  beforeAll(async () => {
    pool = await startShared({ frames });
  });

  /** Expects a lie to cost the job and the worker, and nothing else. */
  const expectKill = async (tell: (pool: TestPool) => Promise<unknown>): Promise<void> => {
    const { renderer, say, log } = pool;
    const [liar = 0] = renderer.processIds;
    const { restarts, kills } = renderer.counters;
    const logged = log.entries.length;
    await expect(tell(pool)).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
      cause: expect.any(WorkerLost),
    });
    expect(await say('next')).toMatch(/ next$/);
    await expect.poll(() => isAlive(liar)).toBe(false);
    expect(renderer.counters).toEqual({ restarts: restarts + 1, kills: kills + 1, recycles: 0 });
    expect(log.entries.slice(logged)).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        details: expect.objectContaining({ reason: expect.stringMatching(/^protocol: /) }),
      }),
    );
  };

  describe.each(Object.entries(lies))(
    'is killed, and its job with it, for %s:',
    (_, [tell, all]) => {
      test.each(all)('%s', (lie) => expectKill((it) => tell(it, lie)));
    },
  );

  test.each(malformedFacts)('is killed for facts of another form: %s', (_, changes) =>
    expectKill(({ inspect }) => inspect(`facts ${JSON.stringify({ ...facts, ...changes })}`)),
  );

  test('may have eight frames decoded', async () => {
    expect(await pool.sayByRanges('decode 8 a')).toBe(Array(8).fill('a').join('|'));
  });

  test('is killed for a second response, which the next job does not get', async () => {
    const { renderer, say } = await start();
    const [liar] = renderer.processIds;
    expect(await say('answer unasked')).toBe('first');
    const next = await say('next');
    expect(next).toMatch(/ next$/);
    expect(processIdIn(next)).not.toBe(liar);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('is killed for a response to a job it has not begun, which another may do', async () => {
    const { renderer, say } = await start();
    await expect(say('not begun')).rejects.toMatchObject({ code: 'OVERLOADED' });
    await expect.poll(() => renderer.counters.kills).toBe(3);
    expect(await say('next')).toMatch(/ next$/);
  });

  test('cannot fill the log', async () => {
    const { say, log } = await start();
    expect(await say('write-errors 5000')).toBe('written');
    expect(await say('next')).toMatch(/ next$/);
    const lines = (): string[] =>
      log.entries.flatMap(({ details }) => ('line' in details ? [String(details.line)] : []));
    // They come through another process than the response.
    await expect.poll(() => lines().length).toBeGreaterThanOrEqual(20);
    await say('anything more');
    expect(lines()[0]).toBe('complaint 1');
    expect(lines()).toHaveLength(20);
  });

  test('may send a response in pieces of any size, and one after another', async () => {
    const { say } = await start();
    for (const pieceBytes of [1, 7, 8, 9, 13]) {
      expect(await say(`in-pieces ${pieceBytes}`)).toBe('in pieces');
    }
  });
});
