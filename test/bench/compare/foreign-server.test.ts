import { describe, expect, test } from 'vitest';
import {
  fillTemplate,
  knowsAnimations,
  parseServer,
} from '../../../bench/compare/foreign-server.ts';

const rendering = {
  path: 'avatars/1/face',
  widthPx: 64,
  format: 'webp',
  isAnimated: true,
} as const;

describe('another server', () => {
  test('is a name, an origin and a template, which may have equals signs too', () => {
    expect(parseServer('imgproxy=http://127.0.0.1:8080/w:{width}/f={format}/{path}')).toEqual({
      name: 'imgproxy',
      origin: 'http://127.0.0.1:8080',
      target: '/w:{width}/f={format}/{path}',
    });
  });

  test.each([
    ['http://127.0.0.1:8080/{path}', 'without a name'],
    ['one=http://127.0.0.1/{path}', 'without a port'],
    ['one=http://127.0.0.1:8080', 'without a path'],
    ['one=https://127.0.0.1:8080/{path}', 'over TLS'],
    ['one=http://127.0.0.1:8080/{height}', 'with a field that there is not'],
  ])('%s is refused: %s', (option) => {
    expect(() => parseServer(option)).toThrow('--server');
  });

  test('is asked for a rendering by all of its fields, as often as they stand there', () => {
    expect(fillTemplate('/{format}/{width}x{width}/{animated}/{path}', rendering)).toBe(
      '/webp/64x64/true/avatars/1/face',
    );
  });

  test('is asked for animations where it says how', () => {
    const server = { name: 'one', origin: 'http://127.0.0.1:8080' };
    expect(knowsAnimations({ ...server, target: '/{path}?n={animated}' })).toBe(true);
    expect(knowsAnimations({ ...server, target: '/{path}' })).toBe(false);
  });
});
