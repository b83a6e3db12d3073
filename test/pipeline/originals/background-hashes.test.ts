import { expect, test } from 'vitest';
import { createStorageBackend } from '../../../src/pipeline/originals/backend.ts';
import { BackgroundHashes } from '../../../src/pipeline/originals/digests.ts';
import { settle } from '../../support/deferred.ts';

test('many hashes wait without a warning of a memory leak', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  const source = { identity: 'tag', open: () => new Promise<never>(() => undefined) } as const;
  const limits = { firstByteTimeoutMs: 9_000, bodyTimeoutMs: 9_000, maxOriginalBytes: 1 };
  const backend = createStorageBackend(source, limits, {} as never);
  const closing = new AbortController();
  const begin = ({ originKey }: { readonly originKey: string }) => ({
    originKey,
    sourceKey: originKey,
    backend,
  });
  const hashes = new BackgroundHashes({} as never, begin, closing.signal);
  for (let id = 0; id < 20; id += 1) {
    const originKey = `attachments/1/${id}/a`;
    hashes.hashSoon({ originKey, sourceKey: originKey, backend });
  }
  await settle();
  closing.abort();
  await settle();
  process.off('warning', note);
  expect(warnings).toEqual([]);
});
