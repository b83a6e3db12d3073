import { describe, expect, test } from 'vitest';
import { type MatrixProfile, readMatrixProfile } from '../../src/formats/icc-profile.ts';
import { createProfile, formatProfile } from '../support/images/icc-profile.ts';
import { join, u32be } from './containers.ts';

/** A grey profile whose curve is a tag as it stands. */
function profileOf(curve: Buffer): Buffer {
  return formatProfile('GRAY', [['kTRC', curve]], 1024);
}

function curveOf(profile: MatrixProfile | undefined): (sample: number) => number {
  if (profile?.kind !== 'grey') throw new Error('Expected a profile of grey');
  return profile.curve;
}

function table(...samples: readonly number[]): Buffer {
  const values = samples.flatMap((sample) => [sample >>> 8, sample & 0xff]);
  return join('curv', u32be(0), u32be(samples.length), ...values);
}

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
  ] as const)('is read from %s', (_, tag, expected) => {
    const curve = curveOf(readMatrixProfile(profileOf(tag), 'grey'));
    for (const [index, sample] of [0, 0.5, 1].entries()) {
      expect(curve(sample)).toBeCloseTo(expected[index] ?? 0, 4);
    }
  });

  test.each([
    ['no tag', join('XYZ ', Buffer.alloc(16))],
    ['a table that ends early', join('curv', u32be(0), u32be(1_000_000))],
    ['a formula that ends early', formula(4, 2, 1)],
    ['a formula that there is not', formula(5, 2, 1, 1, 1, 1, 1, 1)],
    ['three bytes', Buffer.from('cur')],
  ])('is not read from %s', (_, tag) => {
    expect(readMatrixProfile(profileOf(tag), 'grey')).toBeUndefined();
  });
});

test('an ICC profile is read only for the colour model that it describes', () => {
  expect(readMatrixProfile(createProfile('grey'), 'rgb')).toBeUndefined();
  expect(readMatrixProfile(createProfile('sRGB'), 'grey')).toBeUndefined();
});

/** A profile of sRGB with other bytes at one place. */
function patched(text: string, at: number): Buffer {
  const profile = createProfile('sRGB');
  profile.write(text, at, 'latin1');
  return profile;
}

const at = (tag: string): number => createProfile('sRGB').indexOf(tag);

test.each([
  ['nothing', Buffer.of()],
  ['cut off', createProfile('sRGB').subarray(0, 300)],
  ['of an unknown version', patched('\x05', 8)],
  ['for CMYK', patched('CMYK', 16)],
  ['without a signature', patched('XXXX', 36)],
  ['without a curve', patched('none', at('gTRC'))],
  ['without a primary', patched('none', at('bXYZ'))],
  ['of thousands of tags', patched('\0\0\xff\xff', 128)],
  ['a table besides', patched('A2B0', at('cprt'))],
])('an ICC profile that is %s is not read', (_, profile) => {
  expect(readMatrixProfile(profile, 'rgb')).toBeUndefined();
});

test('the ICC profile of sRGB changes no sample', () => {
  const profile = readMatrixProfile(createProfile('sRGB'), 'rgb');
  if (profile?.kind !== 'rgb') throw new Error('Expected a profile of colours');
  const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1];
  for (const [index, value] of profile.toSrgbLight.flat().entries()) {
    expect(value).toBeCloseTo(identity[index] ?? 0, 3);
  }
});
