import { describe, expect, test } from 'vitest';
import { ASSET_WIDTHS_PX, parseQuery, queryParameters } from '../../src/contract/media-query.ts';

const kinds = ['image', 'sticker', 'external'] as const;

describe('the described parameters', () => {
  test('are those of the contract', () => {
    const names = (kind: (typeof kinds)[number]) => queryParameters[kind].map(({ name }) => name);
    expect(names('image')).toEqual(['size', 'quality', 'animated']);
    expect(names('sticker')).toEqual(['size', 'quality', 'animated']);
    expect(names('external')).toEqual(['width', 'height', 'format', 'quality', 'animated']);
    expect(queryParameters.none).toEqual([]);
    const [size] = queryParameters.image;
    expect(size).toEqual({
      name: 'size',
      description: expect.stringMatching(/^Width in pixels/),
      form: { kind: 'choice', values: ASSET_WIDTHS_PX.map(String) },
      default: '128',
    });
    expect(queryParameters.sticker[0]).not.toHaveProperty('default');
  });

  test.each(kinds)('of %s are what the parser takes, to the bounds', (kind) => {
    const isTaken = (name: string, value: string) =>
      parseQuery(kind, `${name}=${value}`).kind === 'valid';
    for (const { name, form } of queryParameters[kind]) {
      const { inside, outside } =
        form.kind === 'choice'
          ? { inside: form.values, outside: ['', 'x', ` ${form.values[0]}`] }
          : {
              inside: [form.min, form.max].map(String),
              outside: [form.min - 1, form.max + 1].map(String),
            };
      for (const value of inside) expect(isTaken(name, value), `${name}=${value}`).toBe(true);
      for (const value of outside) expect(isTaken(name, value), `${name}=${value}`).toBe(false);
    }
  });

  test.each(kinds)('of %s have defaults that change nothing', (kind) => {
    for (const { name, default: value } of queryParameters[kind]) {
      if (value === undefined) continue;
      expect(parseQuery(kind, `${name}=${value}`)).toEqual(parseQuery(kind, ''));
    }
  });
});
