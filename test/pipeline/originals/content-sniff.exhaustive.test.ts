import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dispositionOf } from '../../../src/http/media/content-disposition.ts';
import { SNIFF_BYTES, sniffContentType } from '../../../src/pipeline/originals/content-sniff.ts';
import { corpusFiles } from '../../formats/facts-of.ts';
import { expectNoUnhandledRejections } from '../../support/unhandled-rejections.ts';
import { MEDIA_TYPE, prefixOf, WALKED_HEADS } from './sniff-samples.ts';

const TEXT = 'text/plain; charset=utf-8';

describe('text', () => {
  it('never becomes anything inline but text or a broken GIF', async () => {
    const head = fc.constantFrom('', 'GIF8', 'GIF89a', 'BM', 'ID3', 'ftyp', 'RIFF', '<', '\uFEFF');
    const tail = fc
      .string({ unit: 'binary', maxLength: 300 })
      .map((text) =>
        Array.from(text, (character) => (character < ' ' ? '\n' : character)).join(''),
      );
    await fc.assert(
      fc.asyncProperty(head, tail, async (start, end) => {
        const type = await sniffContentType(new TextEncoder().encode(start + end));
        if (dispositionOf(type, 'x') === 'inline') expect([TEXT, 'image/gif']).toContain(type);
      }),
    );
  });
});

describe('hostile bytes', () => {
  expectNoUnhandledRejections();

  const magic = fc.constantFrom(...WALKED_HEADS);
  const junk = fc.uint8Array({ maxLength: SNIFF_BYTES });

  it('always have a type, soon', async () => {
    const slowest = { ms: 0 };
    await fc.assert(
      fc.asyncProperty(fc.option(magic), junk, async (head, tail) => {
        const bytes = Buffer.concat([Buffer.from(head ?? '', 'latin1'), tail]);
        const started = performance.now();
        expect(await sniffContentType(bytes)).toMatch(MEDIA_TYPE);
        slowest.ms = Math.max(slowest.ms, performance.now() - started);
      }),
      { numRuns: 2_000 },
    );
    expect(slowest.ms).toBeLessThan(1_000);
  });

  it('of damaged real files have one as well', async () => {
    const files = [
      ...corpusFiles('nonimage'),
      ...corpusFiles('hostile-corrupt'),
      ...corpusFiles('apng'),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...files),
        fc.array(fc.tuple(fc.nat(SNIFF_BYTES - 1), fc.nat(255)), { maxLength: 20 }),
        fc.nat(SNIFF_BYTES),
        async (file, changes, length) => {
          const bytes = Uint8Array.from(prefixOf(file));
          for (const [index, value] of changes) bytes[index % bytes.length] = value;
          expect(await sniffContentType(bytes.subarray(0, length))).toMatch(MEDIA_TYPE);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
