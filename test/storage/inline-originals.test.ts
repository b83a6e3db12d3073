import { expect, test } from 'vitest';
import { InlineOriginals } from '../../src/storage/inline-originals.ts';

test('keeps the bytes of an original in a request body until its last user frees them', async () => {
  const originals = new InlineOriginals();
  const bytes = Buffer.from('some bytes');
  const [one, other] = [originals.add(bytes), originals.add(Buffer.from(bytes))];
  expect(other.key).toBe(one.key);
  const open = () => originals.open(one.key, { signal: AbortSignal.timeout(1_000) });
  one.free();
  expect(await open()).toMatchObject({ sizeBytes: bytes.length });
  other.free();
  await expect(open()).rejects.toMatchObject({ code: 'UNKNOWN_MEDIA' });
});
