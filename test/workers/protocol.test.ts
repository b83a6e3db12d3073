import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FrameReader, formatFrame, ProtocolError } from '../../src/workers/frames.ts';
import {
  formatCommand,
  formatMessage,
  MAX_MESSAGE_HEADER_BYTES,
  parseCommand,
  parseMessage,
  type WorkerMessage,
} from '../../src/workers/protocol.ts';
import { anyJob } from '../support/processes/worker-pool.ts';

const unbounded = { maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity };

const messages: readonly WorkerMessage[] = [
  { kind: 'ready' },
  { kind: 'begun' },
  { kind: 'rendered', body: Buffer.from('picture'), rssBytes: 5 },
  { kind: 'failed', code: 'MEDIA_TOO_LARGE', detail: 'Größe "7"\n', rssBytes: 0 },
];

describe('frames', () => {
  test('come out as they went in, wherever the stream is cut', () => {
    const any = fc.record({
      header: fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer())),
      body: fc.uint8Array({ maxLength: 40 }),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 6 }), fc.infiniteStream(fc.nat(30)), (sent, sizes) => {
        const wire = Buffer.concat(sent.flatMap(({ header, body }) => formatFrame(header, body)));
        const reader = new FrameReader(unbounded);
        const received = [];
        for (let at = 0; at < wire.length; ) {
          const end = at + (sizes.next().value ?? 1);
          received.push(...reader.read(wire.subarray(at, end)));
          at = end;
        }
        expect(received.map(({ header, body }) => ({ header, body: [...(body ?? [])] }))).toEqual(
          sent.map(({ header, body }) => ({
            header: JSON.parse(JSON.stringify(header)),
            body: [...body],
          })),
        );
      }),
    );
  });

  test.each([
    ['header', 11, 0],
    ['body', 0, 6],
  ])('are refused by their first bytes where the %s is too long', (_, header, body) => {
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32BE(header, 0);
    prefix.writeUInt32BE(body, 4);
    const reader = new FrameReader({ maxHeaderBytes: 10, maxBodyBytes: () => 5 });
    expect(() => [...reader.read(prefix.subarray(0, 7))]).not.toThrow();
    expect(() => [...reader.read(prefix.subarray(7))]).toThrow(ProtocolError);
  });
});

test('a frame is announced before there is room for it; without room, the next one still comes', () => {
  const LENGTH = 100_000;
  const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation((size) => {
    if (size === LENGTH) throw new RangeError('Array buffer allocation failed');
    return Buffer.alloc(size);
  });
  const seen: string[] = [];
  const reader = new FrameReader({ ...unbounded, onFrame: () => seen.push('begun') });
  const wire = [{ large: 1 }, { small: 2 }].flatMap((header, index) =>
    formatFrame(header, Buffer.alloc(index === 0 ? LENGTH : 3)),
  );
  for (const piece of wire) {
    for (let at = 0; at < piece.length; at += 1_000) {
      for (const { header, body } of reader.read(piece.subarray(at, at + 1_000))) {
        seen.push(`${JSON.stringify(header)}, ${body?.length ?? 'no'} bytes`);
      }
      if (piece.length === 8) expect(seen.at(-1)).toBe('begun');
    }
  }
  expect(seen).toEqual(['begun', '{"large":1}, no bytes', 'begun', '{"small":2}, 3 bytes']);
  allocate.mockRestore();
});

describe('messages', () => {
  const transfer = (pieces: readonly Uint8Array[]) => [
    ...new FrameReader(unbounded).read(Buffer.concat(pieces)),
  ];

  test.each(messages)('arrive as they were sent: $kind', (message) => {
    const [frame] = transfer(formatMessage(message));
    expect(frame && parseMessage(frame)).toEqual(message);
  });

  test('jobs too', () => {
    const animation = { delaysMs: [0, 40, 33.3], plays: 0 };
    const command = { original: Buffer.from('original'), job: { ...anyJob, animation } };
    const [frame] = transfer(formatCommand(command));
    const received = frame && parseCommand(frame);
    // JSON leaves out what is not there.
    expect(received).toEqual(command);
    expect(received?.job.gamma).toBeUndefined();
  });

  test('of the longest detail fit into a header', () => {
    const detail = '\u0001'.repeat(2_000);
    const [head] = formatMessage({
      kind: 'failed',
      code: 'INTERNAL_ERROR',
      detail,
      rssBytes: 1,
    });
    expect(head?.length).toBeLessThan(MAX_MESSAGE_HEADER_BYTES);
    expect(head?.length).toBeGreaterThan(12_000);
  });

  test('of any other shape are errors of the protocol, and of nothing else', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.uint8Array({ maxLength: 3 }), (header, body) => {
        expect(() => parseMessage({ header, body })).toThrow(ProtocolError);
      }),
    );
  });
});
