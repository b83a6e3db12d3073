import { describe, expect, test } from 'vitest';
import { parseServer } from '../../../bench/compare/contestants.ts';

const rendering = {
  path: 'avatars/1/face',
  widthPx: 64,
  format: 'webp',
  isAnimated: true,
  shrinksOnLoad: false,
  darkroomPath: '/avatars/1/face.webp?size=64',
} as const;

describe('another server', () => {
  test('is a name, an origin and a template, which may have equals signs too', async () => {
    const server = parseServer('imgproxy=http://127.0.0.1:8080/w:{width}/f={format}/{path}');
    expect(server.name).toBe('imgproxy');
    expect(await server.start('')).toMatchObject({
      origin: 'http://127.0.0.1:8080',
      pid: undefined,
    });
    expect(server.targetOf(rendering)).toBe('/w:64/f=webp/avatars/1/face');
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
    const server = parseServer('one=http://a:80/{format}/{width}x{width}/{animated}/{path}');
    expect(server.targetOf(rendering)).toBe('/webp/64x64/true/avatars/1/face');
  });

  test('is asked for animations where it says how', () => {
    expect(parseServer('one=http://a:80/{path}?n={animated}').knowsAnimations).toBe(true);
    expect(parseServer('one=http://a:80/{path}').knowsAnimations).toBe(false);
  });
});
