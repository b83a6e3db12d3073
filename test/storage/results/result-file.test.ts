import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ResultAddress } from '../../../src/contract/result-key.ts';
import type { StoredResult } from '../../../src/pipeline/ports.ts';
import { formatResultFile, parseResultFile } from '../../../src/storage/results/result-file.ts';
import { addressOf, resultOf } from '../contracts/result-store.contract.ts';

function format(address: ResultAddress, result: StoredResult): Buffer {
  const parts = formatResultFile(address, result);
  return Buffer.concat(parts ?? expect.fail('The rendering is too large'));
}

function sum(file: Buffer): Buffer {
  file.writeUInt32BE(crc32(file.subarray(8)), 4);
  return file;
}

/** Returns a file without a body, with any head and a correct checksum. */
function withHead(head: string): Buffer {
  const bytes = Buffer.concat([file.subarray(0, 16), Buffer.from(head, 'latin1')]);
  bytes.writeUInt32BE(head.length, 8);
  bytes.writeUInt32BE(0, 12);
  return sum(bytes);
}

const address = addressOf();
const file = format(address, resultOf('the body of a rendering'));

describe('the file of a rendering', () => {
  test('has, byte for byte, the format that older releases wrote', () => {
    const head = '["avatars/1/ab12","avatars/1/ab12?width=64","e1","r1","image/webp"]';
    const body = 'the body of a rendering';
    const preamble = Buffer.from('444b52313855ea4a0000004300000017', 'hex');
    expect(file.equals(Buffer.concat([preamble, Buffer.from(head + body)]))).toBe(true);
  });

  test('returns the rendering of any address', () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 });
    const addresses = fc.record({
      originKey: text,
      cacheKey: text,
      originalEtag: text,
      release: text,
    });
    const bodies = fc.uint8Array({ maxLength: 300 });
    const images = ['image/webp', 'image/png', 'image/jpeg', 'image/gif'] as const;
    const types = fc.constantFrom(...images, 'application/json', 'text/plain');
    fc.assert(
      fc.property(addresses, bodies, types, (any, body, mimeType) => {
        const result = parseResultFile(format(any, { body, mimeType }), any);
        expect(result?.mimeType).toBe(mimeType);
        expect(Buffer.from(body).equals(result?.body ?? Buffer.from('none'))).toBe(true);
      }),
    );
  });

  test('does not exist for a body of more than 32 MiB', () => {
    const make = (sizeBytes: number) =>
      formatResultFile(address, { body: Buffer.alloc(sizeBytes), mimeType: 'image/webp' });
    expect(make(32 * 1024 * 1024)).toBeDefined();
    expect(make(32 * 1024 * 1024 + 1)).toBeUndefined();
  });

  test('is rejected at every shorter length, and at a longer one', () => {
    expect(parseResultFile(file, address)).toBeDefined();
    for (let length = 0; length < file.length; length += 1) {
      expect(parseResultFile(file.subarray(0, length), address)).toBeUndefined();
    }
    expect(parseResultFile(Buffer.concat([file, Buffer.of(0)]), address)).toBeUndefined();
  });

  test('is rejected with any single bit flipped', () => {
    for (let bit = 0; bit < 8 * file.length; bit += 1) {
      const damaged = Buffer.from(file);
      damaged.writeUInt8(damaged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(parseResultFile(damaged, address), `bit ${bit}`).toBeUndefined();
    }
  });

  test('distinguishes addresses whose fields contain each other’s separators', () => {
    const first = addressOf({ originalEtag: 'a","b', release: 'c' });
    const second = addressOf({ originalEtag: 'a', release: 'b","c' });
    expect(parseResultFile(format(first, resultOf('x')), second)).toBeUndefined();
  });

  const headOf = (type: string, key = 'avatars/1/ab12?width=64') =>
    JSON.stringify(['avatars/1/ab12', key, 'e1', 'r1', type]);
  const types = ['', 'text/html', 'image/svg+xml', 'image/webp\n', 'image/avif', 'application/xml'];
  test.each([
    ...['', '{}', 'null', '"text"', '[]', '["avatars/1/ab12"]', '[1,2,3,4,5]', '[', '\xff'],
    ...types.map((type) => headOf(type)),
  ])('is rejected with the head %j, although its checksum is correct', (head) =>
    expect(parseResultFile(withHead(head), address)).toBeUndefined(),
  );

  test('is rejected if its head is longer than 32 KiB, even if its checksum is correct', () => {
    const longest = 32 * 1024 - headOf('image/png', '').length;
    const parse = (length: number) => {
      const key = 'k'.repeat(length);
      return parseResultFile(withHead(headOf('image/png', key)), addressOf({ cacheKey: key }));
    };
    expect(parse(longest)?.mimeType).toBe('image/png');
    expect(parse(longest + 1)).toBeUndefined();
    const tooLong = addressOf({ cacheKey: 'k'.repeat(longest + 100) });
    expect(formatResultFile(tooLong, resultOf('x'))).toBeUndefined();
  });

  test.each([0x7fff_ffff, 0x8000_0000, 0xffff_ffff])('is rejected if a length is %i', (length) => {
    for (const at of [8, 12]) {
      const absurd = Buffer.from(file);
      absurd.writeUInt32BE(length, at);
      expect(parseResultFile(sum(absurd), address)).toBeUndefined();
    }
  });
});
