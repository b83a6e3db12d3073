import { describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { formatPacket, PacketReader, ProtocolError } from '../../src/workers/packets.ts';
import { parseMessage } from '../../src/workers/parse-message.ts';
import { isAlive } from '../support/processes/worker-ids.ts';
import { raw, readerOf, sharePool, type TestPool } from '../support/processes/worker-pool.ts';

const failed = { kind: 'failed', code: 'UNPROCESSABLE_MEDIA', detail: '', rssBytes: 1 };
const read = { kind: 'read', start: 0, end: 1 };
const rendered = { kind: 'rendered', rssBytes: 1 };
const decode = (changes: object = {}) => ({
  kind: 'decode',
  request: { codec: 'h264', size: { widthPx: 16, heightPx: 16 }, ...changes },
});
const track = {
  codec: 'h264',
  codedSize: { widthPx: 192, heightPx: 144 },
  size: { widthPx: 256, heightPx: 144 },
  orientation: 6,
};
const inspected = (changes: object = {}) => ({
  kind: 'inspected',
  metadata: {
    kind: 'video',
    container: 'mp4',
    codec: 'avc1.640028',
    hasAudio: false,
    video: track,
    ...changes,
  },
  rssBytes: 1,
});

const parse = (header: unknown, body = '') => parseMessage({ header, body: Buffer.from(body) });

test.each<[string, header: object, body?: string]>([
  ['a failure', failed],
  ['a range', read],
  ['a picture', rendered, 'x'],
  ['a frame', decode(), 'x'],
  ['facts', inspected()],
])('a message of a worker is taken, but for what it adds: %s', (_, header, body) => {
  const message = parse({ ...header, more: 'x' }, body);
  expect(message).toMatchObject(header);
  expect(message).not.toHaveProperty('more');
});

const malformed: [what: string, header: unknown, body?: string][] = [
  ['an unknown kind', { kind: 'obey' }],
  ['no object', [null]],
  ['null', null],
  ['an unknown code', { ...failed, code: 'RATE_LIMITED' }],
  ['an inherited code', { ...failed, code: 'toString' }],
  ['no detail', { ...failed, detail: undefined }],
  ['a body of a failure', failed, 'x'],
  ['no body', rendered],
  ['a body in the header', { ...rendered, body: [1, 2] }],
  ['no memory size', { kind: 'rendered' }, 'x'],
  ['a range of nothing', { ...read, start: 1 }],
  ['a range before the beginning', { ...read, start: -1 }],
  ['a range that is no number', { ...read, start: '0', end: [1] }],
  ['a frame of an unknown codec', decode({ codec: 'mpeg2' }), 'x'],
  ['a frame of an inherited codec', decode({ codec: 'toString' }), 'x'],
  ['a frame of no size', decode({ size: undefined }), 'x'],
  ['a frame without a width', decode({ size: { widthPx: 0, heightPx: 1 } }), 'x'],
  ['an edge over the bound', decode({ size: { widthPx: 16_385, heightPx: 1 } }), 'x'],
  ['pixels over the bound', decode({ size: { widthPx: 16_384, heightPx: 2_177 } }), 'x'],
  ['a frame of no stream', decode()],
  ['facts of no kind', inspected({ kind: undefined })],
  ['facts of an unknown kind', inspected({ kind: 'image' })],
  ['an unknown container', inspected({ container: 'avi' })],
  ['a codec that is no name', inspected({ codec: '<script>' })],
  ['a codec of any length', inspected({ codec: 'a'.repeat(65) })],
  ['a duration that is no number', inspected({ durationS: '1' })],
  ['a duration before zero', inspected({ durationS: -1 })],
  ['sound that is no truth value', inspected({ hasAudio: 1 })],
  ['a track that is none', inspected({ video: [] })],
  ['a track that we do not decode', inspected({ video: { ...track, codec: 'toString' } })],
  ['a size without an edge', inspected({ video: { ...track, size: { widthPx: 1 } } })],
  ['half a pixel', inspected({ video: { ...track, size: { widthPx: 1.5, heightPx: 1 } } })],
  ['an orientation that is none', inspected({ video: { ...track, orientation: 9 } })],
  ['an unknown fault', inspected({ posterError: { code: 'OVERLOADED', reason: '' } })],
  ['a fault without a reason', inspected({ posterError: { code: 'UNPROCESSABLE_MEDIA' } })],
  ['neither a fault nor a track', inspected({ video: undefined })],
];
test.each(malformed)('is no message of a worker: %s', (_, header, body) => {
  expect(() => parse(header, body)).toThrow(ProtocolError);
});

test('frames may come in pieces of any size, and one after another', () => {
  const body = Buffer.from('in pieces');
  const bytes = Buffer.concat([...formatPacket(rendered, body), ...formatPacket(rendered, body)]);
  for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes += 1) {
    const reader = new PacketReader({ maxHeaderBytes: 99, maxBodyBytes: () => body.length });
    const frames = Array.from({ length: bytes.length }, (_, at) =>
      at % pieceBytes === 0 ? [...reader.read(bytes.subarray(at, at + pieceBytes))] : [],
    );
    expect(frames.flat()).toEqual(Array(2).fill({ header: rendered, body }));
  }
});

/** Has a worker lie while it waits for what it reads. */
const waiting = ({ sayByRanges }: TestPool, lie: string): Promise<string> =>
  sayByRanges(readerOf(lie, () => new Promise(() => undefined)));

/** Beginning of a frame with these lengths of its header and body. */
const lengths = (...bytes: readonly [header: number, body: number]): string =>
  `raw ${bytes.map((each) => each.toString(16).padStart(8, '0')).join('')}`;

const lies: [what: string, tell: (pool: TestPool) => Promise<unknown>][] = [
  ['what is no message', ({ say }) => say(raw({ kind: 'obey' }))],
  ['no JSON', ({ say }) => say(`${lengths(3, 0)}7b227d`)],
  ['a huge header', ({ say }) => say(lengths(16 * 1024 + 1, 0))],
  ['a picture over the bound', ({ say }) => say(lengths(40, 1_000_001))],
  ['"ready" once more', ({ say }) => say(raw({ kind: 'ready' }))],
  ['"begun" once more', ({ say }) => say(raw({ kind: 'begun' }))],
  ['a range of what it has', ({ say }) => say(raw(read))],
  ['a frame of what it has', ({ say }) => say('decode 1 a')],
  ['a range too far', ({ sayByRanges }) => sayByRanges(raw({ ...read, end: 10_000 }))],
  ['facts for a picture', ({ sayByRanges }) => sayByRanges(raw(inspected()))],
  ['a stream over the bound', ({ sayByRanges }) => sayByRanges(lengths(40, 9 * 2 ** 20 + 1))],
  ['a ninth frame', ({ sayByRanges }) => sayByRanges('decode 9 a')],
  ['a frame for facts', ({ inspect }) => inspect('decode 1 a')],
  ['a picture for facts', ({ inspect }) => inspect('a picture')],
  ['a request during another one', (pool) => waiting(pool, raw(read, read))],
  ['a response during a request', (pool) => waiting(pool, raw(read, failed))],
];

describe('a worker in the hands of an attacker', () => {
  /** Returns the stream as the frame. */
  const frames = {
    async *decode({ stream }: { readonly stream: Uint8Array }) {
      yield stream;
    },
  };
  const shared = sharePool({ frames });

  test.each(lies)('is killed, and its job with it, for %s', async (_, tell) => {
    const { renderer, say, log } = shared.pool;
    const [liar = 0] = renderer.processIds;
    await expect(tell(shared.pool)).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
      cause: expect.any(WorkerLost),
    });
    expect(await say('next')).toMatch(/ next$/);
    await expect.poll(() => isAlive(liar)).toBe(false);
    expect(shared.counted()).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    expect(log.entries).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        details: expect.objectContaining({ reason: expect.stringMatching(/^protocol: /) }),
      }),
    );
  });

  test('may have eight frames decoded', async () => {
    expect(await shared.pool.sayByRanges('decode 8 a')).toBe(Array(8).fill('a').join('|'));
  });

  test('is killed for a second response, which the next job does not get', async () => {
    const { renderer, say } = shared.pool;
    const [liar] = renderer.processIds;
    const responses = ['first', 'second'].map((detail) => ({ ...failed, detail }));
    await expect(say(raw(...responses))).rejects.toMatchObject({ cause: { message: 'first' } });
    expect(await say('next')).toMatch(/ next$/);
    expect(renderer.processIds).not.toContain(liar);
    expect(shared.counted().kills).toBe(1);
  });

  test('is killed for a response to a job it has not begun, which another may do', async () => {
    const { say } = shared.pool;
    await expect(say('not begun')).rejects.toMatchObject({ code: 'OVERLOADED' });
    await expect.poll(() => shared.counted().kills).toBe(3);
    expect(await say('next')).toMatch(/ next$/);
  });

  test('cannot fill the log', async () => {
    const { say, log } = shared.pool;
    const lines = (): string[] =>
      log.entries.flatMap(({ details }) => ('line' in details ? [String(details.line)] : []));
    expect(await say('write-errors 5000')).toBe('written');
    expect(await say('next')).toMatch(/ next$/);
    // They come through another process than the response.
    await expect.poll(() => lines().length).toBeGreaterThanOrEqual(20);
    await say('anything more');
    expect(lines()[0]).toBe('complaint 1');
    expect(lines()).toHaveLength(20);
  });
});
