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
  ['metadata', inspected()],
])('accepts a message, and drops its unknown fields: %s', (_, header, body) => {
  const message = parse({ ...header, more: 'x' }, body);
  expect(message).toMatchObject(header);
  expect(message).not.toHaveProperty('more');
});

const malformed: [what: string, header: unknown, body?: string][] = [
  ['an unknown kind', { kind: 'obey' }],
  ['an array', [null]],
  ['null', null],
  ['an unknown code', { ...failed, code: 'RATE_LIMITED' }],
  ['an inherited code', { ...failed, code: 'toString' }],
  ['no detail', { ...failed, detail: undefined }],
  ['a failure with a body', failed, 'x'],
  ['no body', rendered],
  ['a body in the header', { ...rendered, body: [1, 2] }],
  ['no memory size', { kind: 'rendered' }, 'x'],
  ['an empty range', { ...read, start: 1 }],
  ['a negative range', { ...read, start: -1 }],
  ['a range of text', { ...read, start: '0', end: [1] }],
  ['a frame of an unknown codec', decode({ codec: 'mpeg2' }), 'x'],
  ['a frame of an inherited codec', decode({ codec: 'toString' }), 'x'],
  ['a frame without a size', decode({ size: undefined }), 'x'],
  ['a frame without a width', decode({ size: { widthPx: 0, heightPx: 1 } }), 'x'],
  ['an edge over the limit', decode({ size: { widthPx: 16_385, heightPx: 1 } }), 'x'],
  ['pixels over the limit', decode({ size: { widthPx: 16_384, heightPx: 2_177 } }), 'x'],
  ['a frame without a stream', decode()],
  ['metadata without a kind', inspected({ kind: undefined })],
  ['metadata of an unknown kind', inspected({ kind: 'image' })],
  ['an unknown container', inspected({ container: 'avi' })],
  ['a codec with invalid characters', inspected({ codec: '<script>' })],
  ['a long codec', inspected({ codec: 'a'.repeat(65) })],
  ['a duration as text', inspected({ durationS: '1' })],
  ['a negative duration', inspected({ durationS: -1 })],
  ['a number for the presence of audio', inspected({ hasAudio: 1 })],
  ['an array as a track', inspected({ video: [] })],
  ['a track of an unknown codec', inspected({ video: { ...track, codec: 'toString' } })],
  ['a size without an edge', inspected({ video: { ...track, size: { widthPx: 1 } } })],
  ['half a pixel', inspected({ video: { ...track, size: { widthPx: 1.5, heightPx: 1 } } })],
  ['an invalid orientation', inspected({ video: { ...track, orientation: 9 } })],
  [
    'an invalid code of a poster error',
    inspected({ posterError: { code: 'OVERLOADED', reason: '' } }),
  ],
  ['a poster error without a reason', inspected({ posterError: { code: 'UNPROCESSABLE_MEDIA' } })],
  ['neither a poster error nor a track', inspected({ video: undefined })],
];
test.each(malformed)('rejects a message: %s', (_, header, body) => {
  expect(() => parse(header, body)).toThrow(ProtocolError);
});

test('reads packets split into pieces of any size, and several packets in one piece', () => {
  const body = Buffer.from('in pieces');
  const bytes = Buffer.concat([...formatPacket(rendered, body), ...formatPacket(rendered, body)]);
  for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes += 1) {
    const reader = new PacketReader({ maxHeaderBytes: 99, maxBodyBytes: () => body.length });
    const packets = Array.from({ length: bytes.length }, (_, at) =>
      at % pieceBytes === 0 ? [...reader.read(bytes.subarray(at, at + pieceBytes))] : [],
    );
    expect(packets.flat()).toEqual(Array(2).fill({ header: rendered, body }));
  }
});

/** Makes a worker send a false message while it waits for a range. */
const sendWhileWaiting = ({ sayByRanges }: TestPool, falseMessage: string): Promise<string> =>
  sayByRanges(readerOf(falseMessage, () => new Promise(() => undefined)));

/** Start of a packet with these lengths of header and body. */
const lengths = (...bytes: readonly [header: number, body: number]): string =>
  `raw ${bytes.map((each) => each.toString(16).padStart(8, '0')).join('')}`;

const falseMessages: [what: string, send: (pool: TestPool) => Promise<unknown>][] = [
  ['an unknown message', ({ say }) => say(raw({ kind: 'obey' }))],
  ['invalid JSON', ({ say }) => say(`${lengths(3, 0)}7b227d`)],
  ['a huge header', ({ say }) => say(lengths(16 * 1024 + 1, 0))],
  ['a picture over the limit', ({ say }) => say(lengths(40, 1_000_001))],
  ['a second "ready"', ({ say }) => say(raw({ kind: 'ready' }))],
  [
    'a response to a job that it has not received',
    async ({ say }) => {
      await say('respond-early');
      return say('x'.repeat(8 * 2 ** 20));
    },
  ],
  ['a second "begun"', ({ say }) => say(raw({ kind: 'begun' }))],
  ['a range of a complete original', ({ say }) => say(raw(read))],
  ['a frame of a complete original', ({ say }) => say('decode 1 a')],
  ['a range beyond the original', ({ sayByRanges }) => sayByRanges(raw({ ...read, end: 10_000 }))],
  ['metadata instead of a picture', ({ sayByRanges }) => sayByRanges(raw(inspected()))],
  ['a stream over the limit', ({ sayByRanges }) => sayByRanges(lengths(40, 9 * 2 ** 20 + 1))],
  ['a ninth frame', ({ sayByRanges }) => sayByRanges('decode 9 a')],
  ['a frame during an inspection', ({ inspect }) => inspect('decode 1 a')],
  ['a picture instead of metadata', ({ inspect }) => inspect('a picture')],
  ['a request during another one', (pool) => sendWhileWaiting(pool, raw(read, read))],
  ['a response during a request', (pool) => sendWhileWaiting(pool, raw(read, failed))],
];

describe('a compromised worker', () => {
  const frames = {
    async *decode({ stream }: { readonly stream: Uint8Array }) {
      yield stream;
    },
  };
  const shared = sharePool({ frames });

  test.each(falseMessages)('is killed with its job for %s', async (_, send) => {
    const { renderer, say, log } = shared.pool;
    const [attacker = 0] = renderer.processIds;
    await expect(send(shared.pool)).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
      cause: expect.any(WorkerLost),
    });
    expect(await say('next')).toMatch(/ next$/);
    await expect.poll(() => isAlive(attacker)).toBe(false);
    expect(shared.counted()).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    expect(log.entries).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        details: expect.objectContaining({ reason: expect.stringMatching(/^protocol: /) }),
      }),
    );
  });

  test('can request eight frames', async () => {
    expect(await shared.pool.sayByRanges('decode 8 a')).toBe(Array(8).fill('a').join('|'));
  });

  test('is killed for a second response, which does not reach the next job', async () => {
    const { renderer, say } = shared.pool;
    const [attacker] = renderer.processIds;
    const responses = ['first', 'second'].map((detail) => ({ ...failed, detail }));
    await expect(say(raw(...responses))).rejects.toMatchObject({ cause: { message: 'first' } });
    expect(await say('next')).toMatch(/ next$/);
    expect(renderer.processIds).not.toContain(attacker);
    expect(shared.counted().kills).toBe(1);
  });

  test('is killed for a response to a job that it has not begun, and the job is retried', async () => {
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
    // The lines arrive through another process than the response.
    await expect.poll(() => lines().length).toBeGreaterThanOrEqual(20);
    await say('anything more');
    expect(lines()[0]).toBe('complaint 1');
    expect(lines()).toHaveLength(20);
  });
});
