import { expect, test } from 'vitest';
import { GivenBytes } from '../../src/storage/given-bytes.ts';

test('bytes that came with requests are held until the last one lets go of them', async () => {
  const given = new GivenBytes();
  const bytes = Buffer.from('some bytes');
  const [one, other] = [given.hold(bytes), given.hold(Buffer.from(bytes))];
  expect(other.originKey).toBe(one.originKey);
  const open = () => given.open(one.originKey, { signal: AbortSignal.timeout(1_000) });
  one.release();
  expect(await open()).toMatchObject({ sizeBytes: bytes.length });
  other.release();
  await expect(open()).rejects.toMatchObject({ code: 'UNKNOWN_MEDIA' });
});
