import { describe, expect, test } from 'vitest';
import { readMatrixProfile } from '../../src/formats/icc-profile.ts';
import { join, put, u16be, u32be } from './containers.ts';

/** A profile of tags with their data (ICC.1:2022 §7). */
function profileOf(space: 'GRAY' | 'RGB ', tags: Readonly<Record<string, Buffer>>): Buffer {
  const head = join(Buffer.alloc(8), 4, '\0\0\0mntr', space, 'XYZ ', Buffer.alloc(12), 'acsp');
  const entries = Object.entries(tags);
  let end = 132 + 12 * entries.length;
  const table = entries.map(([tag, data]) => {
    end += data.length;
    return join(tag, u32be(end - data.length), u32be(data.length));
  });
  return join(head, Buffer.alloc(88), u32be(entries.length), ...table, ...Object.values(tags));
}

const table = (...samples: readonly number[]) =>
  join('curv', u32be(0), u32be(samples.length), ...samples.map(u16be));

function formula(kind: number, ...parameters: readonly number[]): Buffer {
  const fixed = parameters.map((value) => u32be(Math.round(value * 65_536)));
  return join('para', u32be(0), 0, kind, 0, 0, ...fixed);
}

describe('a curve of an ICC profile', () => {
  test.each([
    ['nothing', table(), [0, 0.5, 1]],
    ['an exponent', table(2 * 256), [0, 0.25, 1]],
    ['two samples', table(0, 0xffff), [0, 0.5, 1]],
    ['samples', table(0, 0, 0x3333, 0xffff), [0, 0.1, 1]],
    ['formula 0', formula(0, 2), [0, 0.25, 1]],
    ['formula 1', formula(1, 2, 0.5, 0.5), [0.25, 0.5625, 1]],
    ['formula 2', formula(2, 2, 0.5, 0.25, 0.25), [0.3125, 0.5, 0.8125]],
    ['formula 3', formula(3, 2, 1, 0, 0.25, 0.5), [0, 0.25, 1]],
    ['formula 4', formula(4, 2, 0.5, 0, 0.5, 0.75, 0.75, 0.125), [0.125, 0.375, 1]],
  ])('is read from %s', (_, kTRC, expected) => {
    const profile = readMatrixProfile(profileOf('GRAY', { kTRC }), 'grey');
    if (profile?.kind !== 'grey') throw new Error('Expected a profile of grey');
    const light = [0, 0.5, 1].map((sample) => profile.curve(sample));
    expect(light).toEqual(expected.map((value) => expect.closeTo(value, 4)));
  });

  test.each([
    ['no tag', join('XYZ ', Buffer.alloc(16))],
    ['a table that ends early', join('curv', u32be(0), u32be(1_000_000))],
    ['a formula that ends early', formula(4, 2, 1)],
    ['an unknown formula', formula(5, 2, 1, 1, 1, 1, 1, 1)],
    ['three bytes', Buffer.from('cur')],
  ])('is not read from %s', (_, kTRC) => {
    expect(readMatrixProfile(profileOf('GRAY', { kTRC }), 'grey')).toBeUndefined();
  });
});

const [curve, primary] = [table(), join('XYZ ', Buffer.alloc(16, 1))];
const curves = { rTRC: curve, gTRC: curve, bTRC: curve };
const primaries = { rXYZ: primary, gXYZ: primary, bXYZ: primary };
const valid = profileOf('RGB ', { ...curves, ...primaries });
/** The profile with bytes overwritten at an offset. */
const patched = (text: string, at: number) => put(valid, at, text);

test('reads an ICC profile only for its colour model', () => {
  expect(readMatrixProfile(valid, 'rgb')).toBeDefined();
  expect(readMatrixProfile(valid, 'grey')).toBeUndefined();
  expect(readMatrixProfile(profileOf('GRAY', { kTRC: curve }), 'rgb')).toBeUndefined();
});

test.each([
  ['empty', Buffer.of()],
  ['truncated', valid.subarray(0, -1)],
  ['of an unknown version', patched('\x05', 8)],
  ['for CMYK', patched('CMYK', 16)],
  ['without a signature', patched('XXXX', 36)],
  ['without a curve', patched('none', valid.indexOf('gTRC'))],
  ['without a primary', patched('none', valid.indexOf('bXYZ'))],
  ['of thousands of tags', patched('\0\0\xff\xff', 128)],
  ['with a look-up table', profileOf('RGB ', { ...curves, ...primaries, A2B0: table() })],
])('rejects an ICC profile: %s', (_, profile) => {
  expect(readMatrixProfile(profile, 'rgb')).toBeUndefined();
});
