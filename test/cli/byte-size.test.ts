import { expect, test } from 'vitest';
import { formatByteSize } from '../../src/cli/byte-size.ts';

test.each([
  [0, '0 bytes'],
  [0.6, '1 byte'],
  [4.890286432047491, '5 bytes'],
  [1023.4, '1023 bytes'],
  [1023.6, '1.0 KiB'],
  [1536.7, '1.5 KiB'],
  [6 * 1024 ** 3, '6.0 GiB'],
  [5_000 * 1024 ** 4, '5000.0 TiB'],
])('%d bytes are %s', (size, text) => {
  expect(formatByteSize(size)).toBe(text);
});
