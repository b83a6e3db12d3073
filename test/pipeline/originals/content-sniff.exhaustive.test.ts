import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { dispositionOf } from '../../../src/http/media/content-disposition.ts';
import { SNIFF_BYTES, sniffContentType } from '../../../src/pipeline/originals/content-sniff.ts';

const TEXT = 'text/plain; charset=utf-8';
const corpus = new URL('../../../fixtures/corpus/', import.meta.url);

function filesOf(category: string): readonly string[] {
  return readdirSync(new URL(`${category}/`, corpus)).map((file) => `${category}/${file}`);
}

function prefixOf(path: string): Uint8Array {
  return readFileSync(new URL(path, corpus)).subarray(0, SNIFF_BYTES);
}

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
  const rejections: unknown[] = [];
  const note = (reason: unknown) => rejections.push(reason);
  process.on('unhandledRejection', note);
  afterAll(() => {
    process.off('unhandledRejection', note);
  });

  // A Content-Type that can go into a header as it is.
  const MEDIA_TYPE = /^[a-z]+\/[\w.+-]+(?:; (?:charset=utf-(?:8|16le|16be)|codecs=opus))?$/;
  // Everything file-type walks through rather than looks at.
  const magic = fc.constantFrom(
    ...[
      'PK\x03\x04',
      '\x1aE\xdf\xa3',
      'ID3\x03\0\0\0\0\0\x05',
      'OggS',
      'II*\0',
      'MM\0*',
      '!<arch>',
    ],
    ...[
      '\x89PNG\r\n\x1a\n',
      '\0\0\0\x18ftyp',
      'RIFF\0\0\0\0',
      '\xff\xfb',
      '\xef\xbb\xbf\xef\xbb\xbf',
    ],
    ...[
      '0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel',
      '\0\0\0\x0cjP  \r\n\x87\n',
      '\x04\0\0\0',
      '<!--',
    ],
  );
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
    expect(rejections).toEqual([]);
  });

  it('of damaged real files have one as well', async () => {
    const files = [...filesOf('nonimage'), ...filesOf('hostile-corrupt'), ...filesOf('apng')];
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
    expect(rejections).toEqual([]);
  });
});
