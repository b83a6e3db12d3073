import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MediaQuery, parseQuery, type QueryKind } from '../../src/contract/media-query.ts';

type Kind = Exclude<QueryKind, 'none'>;

const SIZES = [
  16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 160, 240, 256, 300, 320, 480,
  512, 600, 640, 1024, 1280, 1536, 2048, 3072, 4096,
];

const defaults = {
  image: {
    widthPx: 128,
    heightPx: undefined,
    format: undefined,
    quality: 'high',
    animated: false,
  },
  sticker: {
    widthPx: undefined,
    heightPx: undefined,
    format: undefined,
    quality: 'lossless',
    animated: true,
  },
  external: {
    widthPx: undefined,
    heightPx: undefined,
    format: undefined,
    quality: 'lossless',
    animated: false,
  },
} as const satisfies Record<Kind, MediaQuery>;

function read(kind: Kind, rawQuery: string): MediaQuery {
  const parsed = parseQuery(kind, rawQuery);
  if (parsed.kind !== 'valid') throw new Error(`${rawQuery} is ${JSON.stringify(parsed)}`);
  const { widthPx, heightPx, format, quality, animated } = parsed.query;
  return { widthPx, heightPx, format, quality, animated };
}

/** Names of the parameters at fault, sorted; fails the test if the query is not refused. */
function faultsOf(kind: Kind, rawQuery: string): readonly string[] {
  const parsed = parseQuery(kind, rawQuery);
  if (parsed.kind !== 'invalid') throw new Error(`${rawQuery} is ${JSON.stringify(parsed)}`);
  for (const { message } of parsed.faults) expect(message).toMatch(/^Expected .+\.$/s);
  return parsed.faults.map(({ path }) => path).sort();
}

describe.each(['image', 'sticker', 'external'] as const)('a query of kind %s', (kind) => {
  it('has defaults', () => {
    expect(read(kind, '')).toEqual(defaults[kind]);
  });

  it.each(['high', 'low', 'lossless'] as const)('takes quality %s', (quality) => {
    expect(read(kind, `quality=${quality}`)).toEqual({ ...defaults[kind], quality });
  });

  it.each([true, false])('takes animated=%s', (animated) => {
    expect(read(kind, `animated=${animated}`)).toEqual({ ...defaults[kind], animated });
  });

  it.each(['', 'High', 'LOW', 'lossless%20', '80', 'medium', 'undefined', 'high,low', '%00'])(
    'refuses quality=%s',
    (quality) => {
      expect(faultsOf(kind, `quality=${quality}`)).toEqual(['quality']);
    },
  );

  it.each(['', '1', '0', 'True', 'TRUE', 'yes', 'on', 'null', 'true%20', '+true', '%74rue%0a'])(
    'refuses animated=%s',
    (animated) => {
      expect(faultsOf(kind, `animated=${animated}`)).toEqual(['animated']);
    },
  );

  it.each([
    'quality=low&quality=low',
    'quality=low&quality=high',
    'quality=low&v=1&qu%61lity=low',
    'quality=&quality=bad',
    'quality&quality',
    'quality=low&quality=low&quality=low',
  ])('refuses a parameter given twice, values alike or not, as one fault: %s', (query) => {
    expect(faultsOf(kind, query)).toEqual(['quality']);
  });

  it.each([
    'v=1',
    'v=1&v=2',
    '__proto__=1&constructor=2&toString=3&hasOwnProperty=4',
    'size[]=123&width[]=0&size.x=1',
    'SIZE=123&Quality=bad&ANIMATED=1&Width=0',
    '%20size=123&size%20=123&size%00=1',
    'siz=1&sizes=1',
    '&&&',
    '=',
    '%',
    '%ff%zz=%',
    'a;b',
    '?size=123&?width=0', // after `??`: the name begins with the second mark
    '?quality=bad',
  ])('ignores what no schema names: %s', (query) => {
    expect(read(kind, query)).toEqual(defaults[kind]);
  });

  it('decodes names and values once', () => {
    expect(read(kind, '%71uality=%6cow')).toEqual({ ...defaults[kind], quality: 'low' });
    expect(faultsOf(kind, 'quality=%256cow')).toEqual(['quality']);
    expect(read(kind, '%2571uality=bad')).toEqual(defaults[kind]);
  });

  it('tells all faults at once', () => {
    expect(faultsOf(kind, 'quality=bad&animated=1&animated=1')).toEqual(['animated', 'quality']);
  });
});

describe.each(['image', 'sticker'] as const)('size of kind %s', (kind) => {
  it.each(SIZES)('may be %i', (size) => {
    expect(read(kind, `size=${size}`)).toEqual({ ...defaults[kind], widthPx: size });
  });

  it('may be nothing else between 0 and 5000', () => {
    const accepted = Array.from({ length: 5001 }, (_, size) => size).filter(
      (size) => parseQuery(kind, `size=${size}`).kind === 'valid',
    );
    expect(accepted).toEqual(SIZES);
  });

  it.each([
    '',
    '%20',
    '128.0',
    '128.',
    '0128',
    '%2B128',
    '+128',
    '128+',
    '128%00',
    '128%0a',
    '-128',
    '1e2',
    '0x80',
    '128px',
    '128,256',
    '123',
    '8192',
    '9'.repeat(30),
    'NaN',
    'Infinity',
    'true',
    '%EF%BC%91%EF%BC%96', // 16 in full-width digits
  ])('may not be %s', (size) => {
    expect(faultsOf(kind, `size=${size}`)).toEqual(['size']);
  });

  it('may not stand without a value', () => {
    expect(faultsOf(kind, 'size')).toEqual(['size']);
  });

  it('is the only bound: width, height and format are unknown here', () => {
    expect(read(kind, 'width=0&height=x&format=exe')).toEqual(defaults[kind]);
  });
});

describe.each([
  ['width', 'widthPx'],
  ['height', 'heightPx'],
] as const)('%s of an attachment', (name, field) => {
  it.each([1, 2, 100, 999, 1000, 4095, 4096])('may be %i', (edge) => {
    expect(read('external', `${name}=${edge}`)).toEqual({ ...defaults.external, [field]: edge });
  });

  it.each([
    '',
    '0',
    '4097',
    '9999',
    '10000',
    '01',
    '001',
    '-1',
    '%2B1',
    '+1',
    '1.0',
    '1e3',
    '0x10',
    '1%20',
    '1%0a',
    '1,2',
    '100%25',
    'auto',
    'NaN',
    '9'.repeat(30),
    '%D9%A3',
  ])('may not be %s', (edge) => {
    expect(faultsOf('external', `${name}=${edge}`)).toEqual([name]);
  });
});

describe('an attachment', () => {
  it.each(['png', 'jpg', 'jpeg', 'webp', 'gif'])('may be asked for as %s', (format) => {
    expect(read('external', `format=${format}`)).toEqual({ ...defaults.external, format });
  });

  it.each(['', 'PNG', 'avif', 'svg', 'image/png', '.png', 'png%20', 'original'])(
    'may not be asked for as %s',
    (format) => {
      expect(faultsOf('external', `format=${format}`)).toEqual(['format']);
    },
  );

  it('knows no size', () => {
    expect(read('external', 'size=123&size=0')).toEqual(defaults.external);
  });

  it('tells all faults at once', () => {
    const query = 'width=0&height=4097&format=bmp&quality=best&animated=yes';
    const names = ['animated', 'format', 'height', 'quality', 'width'];
    expect(faultsOf('external', query)).toEqual(names);
    const repeated = `${query}&${query}`;
    expect(faultsOf('external', repeated)).toEqual(names);
  });
});

describe('messages', () => {
  it('repeat what was received, but never much of it', () => {
    const parsed = parseQuery('image', `size=${'<b>🎉'.repeat(4000)}`);
    if (parsed.kind !== 'invalid') throw new Error(parsed.kind);
    const message = parsed.faults[0]?.message ?? '';
    expect(message).toContain('received "<b>🎉');
    expect(message.length).toBeLessThan(400);
  });
});

describe('any query', () => {
  it('is read or refused, never thrown at', () => {
    const piece = fc.constantFrom(
      ...['size', 'width', 'quality', 'animated', 'format', '=', '&', '?', '%', '%zz', '+', '128'],
      ...['true', 'low', '__proto__', '[]', ';', '\u00ff', '😀', '%ff', '\0', '#'],
    );
    fc.assert(
      fc.property(
        fc.constantFrom<Kind>('image', 'sticker', 'external'),
        fc.array(piece, { maxLength: 20 }),
        (kind, pieces) => {
          const parsed = parseQuery(kind, pieces.join(''));
          if (parsed.kind === 'valid') return;
          const names = parsed.faults.map(({ path }) => path);
          expect(names.length).toBeGreaterThan(0);
          expect(new Set(names).size).toBe(names.length);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
