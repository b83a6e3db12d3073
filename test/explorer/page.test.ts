import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../src/contract/media-request.ts';
import { resourceNames } from '../../src/contract/resources.ts';
import { resultKey } from '../../src/contract/result-key.ts';
import { signatureParameters } from '../../src/contract/signing/attachment-signature.ts';
import { describeResource } from '../../src/explorer/contract-tables.ts';
import { hasEffect } from '../../src/explorer/page/effects.ts';
import { fileNameOf, formatImage } from '../../src/explorer/page/export.ts';
import {
  findTarget,
  formatCurl,
  formatPath,
  formatTarget,
  type MediaChoice,
  parseChoice,
  SIGNATURE_NAMES,
} from '../../src/explorer/page/media-choice.ts';

const resources = resourceNames.map(describeResource);

const read = (target: string): MediaChoice =>
  parseChoice(target, resources) ?? expect.fail(`${target} is not read`);

describe('a choice', () => {
  test.each([
    ['/avatars/1/a_ab12.webp?size=512&animated=true'],
    ['/guilds/1/users/2/banners/cd.gif'],
    [`/attachments/1/2/it's%20100%25%20%231%3F%C3%A9%F0%9F%8E%89.png?width=64&format=jpg`],
    ['/avatars/3.png'],
    ['/avatars/01/ab!12.webp?size=512'], // invalid, and requested unchanged
    ['/avatars/1/ab12.x%3Bprintf%20broken?animated=1'],
    ['/attachments/1/2/a.png?width=64&ex=69224180&is=6920f000&hm=50d4'],
    ['/external/abc/%3Fw%3D1/https/a.example/b%20c/d.png?width=64'],
    [
      '/avatars/1/ab12.webp?quality=low&size=128&animated=false',
      '/avatars/1/ab12.webp?quality=low',
    ],
    ['/avatars/1/ab12.png?quality=lossless&animated=true', '/avatars/1/ab12.png'],
    // The defaults of stickers differ.
    ['/stickers/1.webp?size=128&quality=high&animated=false'],
  ])(
    'is formatted as parsed, without defaults and parameters without effect: %s',
    (target, short = target) => {
      expect(formatTarget(read(target))).toBe(short);
    },
  );

  test('keeps the parameters of its signature', () =>
    expect(SIGNATURE_NAMES).toEqual(signatureParameters));

  test.each([
    ['https://cdn.example/avatars/1/ab12.png?size=64#x', '/avatars/1/ab12.png?size=64'],
    ['  avatars/1/ab12.png ', '/avatars/1/ab12.png'],
    ['avatars/1/ab12', '/avatars/1/ab12.webp'], // the key of an original
    ['emojis/1', '/emojis/1.webp'],
    ['/avatars/1/ab12.png?size=1&size=2', '/avatars/1/ab12.png?size=1&size=2'],
    ['/external/abc/https/a.example/b.png?width=1', '/external/abc/https/a.example/b.png?width=1'],
    ...['hello', '', 'https://cdn.example', '/explorer/page', '/avatars/1/2/3.png'].map((text) => [
      text,
    ]),
  ])('is found in user input: %j', (text, target) => {
    expect(findTarget(text, resources)).toBe(target);
  });
});

test.each([
  ...['png', 'jpg', 'jpeg', 'webp', 'gif'].map((extension) => `/avatars/1/ab12.${extension}`),
  ...['/stickers/1.webp', '/stickers/1.gif', '/attachments/1/2/a.gif'],
  ...['width=64', 'quality=low', 'format=png', 'format=jpg', 'format=webp', 'format=gif'].map(
    (query) => `/attachments/1/2/a.gif?${query}`,
  ),
])('a parameter has an effect exactly if it changes the result key: %s', (target) => {
  const choice = read(target);
  const keyOf = (parameters: MediaChoice['parameters']): string => {
    const query = new URLSearchParams({ ...choice.parameters, ...parameters });
    const parsed = parseTarget(`${formatPath(choice)}?${query}`);
    if (parsed.kind !== 'media') throw new Error('no media');
    return resultKey(parsed.request);
  };
  for (const { name, form, default: fallback } of choice.resource.parameters) {
    if (form.kind !== 'choice' || fallback === undefined) continue;
    for (const value of form.values) {
      // `animated` may have no effect with either value.
      if (value === fallback && name !== 'animated') continue;
      const others = name === 'animated' ? form.values : [fallback, value];
      const keys = new Set(others.map((each) => keyOf({ [name]: each })));
      expect(hasEffect(choice, name, value), `${name}=${value}`).toBe(keys.size > 1);
    }
  }
});

/** Runs the command in a shell, and returns the arguments of curl. Throws for any other output. */
function wordsOf(line: string): readonly string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${line}`;
  const words = execFileSync('sh', ['-c', script], { encoding: 'utf8', cwd: tmpdir() }).split('\0');
  expect(words.pop()).toBe('');
  return words;
}

test.each([
  ...["'; printf broken; '", "'\\''; printf broken; '\\''", ';printf broken', '$(printf broken)'],
  ...['`printf broken`', 'png\nprintf broken', 'png -o broken', 'png&printf broken'],
  ...['png|printf broken', 'png>broken', '"$HOME"', '\\', '!!', "''"],
])('a copied command runs only curl: %j', (text) => {
  const part = encodeURIComponent(text);
  for (const target of [
    `/avatars/${part}/${part}.x${part}`,
    `/attachments/1/2/${part}?format=${part}`,
  ]) {
    const choice = read(target);
    const url = `http://a${formatTarget(choice)}`;
    const words = ['-sS', '-D', '-', '-o', 'response', url.replaceAll("'", '%27')];
    expect(wordsOf(formatCurl(url, choice))).toEqual(words);
  }
});

const origin = 'https://cdn.example';
const curl = (target: string) => wordsOf(formatCurl('http://a/', read(target)))[4];
const srcset = (target: string, size = { width: 0, height: 0 }, original?: typeof size) =>
  /srcset="\S+ 1x, https:\S+\?(.*)x"/.exec(
    formatImage({ choice: read(target), origin, size, original }),
  )?.[1];
/** Formats the `srcset` of a picture of this size, whose original is 576 × 768. */
const srcsetOf = (width: number, height: number) => (target: string) =>
  srcset(target, { width, height }, { width: 576, height: 768 });
const file = (target: string) => fileNameOf(read(target));

test.each([
  [curl, '/avatars/1/ab12.jpeg', 'response.jpeg'],
  [curl, '/avatars/1/ab12.bmp', 'response'],
  [curl, '/attachments/1/2/a?format=jpg', 'response.jpg'],
  [curl, '/attachments/1/2/a.exe', 'response'],
  [srcset, '/avatars/1/ab12.webp', 'size=256 2'], // twice the default
  [srcset, '/avatars/1/ab12.webp?size=1536', 'size=3072 2'],
  [srcset, '/avatars/1/ab12.webp?size=600', 'size=1280 2'], // next listed size
  [srcset, '/avatars/1/ab12.webp?size=4096', undefined],
  [srcset, '/attachments/1/2/a.png?width=30&height=20', 'width=60&amp;height=40 2'],
  [srcset, '/attachments/1/2/a.png?width=2049', undefined],
  [srcset, '/attachments/1/2/a.png', undefined],
  [srcsetOf(256, 341), '/avatars/1/ab12.webp?size=256', 'size=512 2'],
  [srcsetOf(512, 683), '/avatars/1/ab12.webp?size=512', 'size=600 1.12'], // limited by the width of the original
  [srcsetOf(576, 768), '/avatars/1/ab12.webp?size=640', undefined], // already the size of the original
  [srcsetOf(400, 533), '/attachments/1/2/a.png?width=400', 'width=576 1.44'],
  [
    srcsetOf(300, 600),
    '/attachments/1/2/a.png?width=300&height=600',
    'width=384&amp;height=768 1.28',
  ],
  [file, '/avatars/1/ab12.jpeg', 'ab12.jpeg'],
  [file, '/attachments/1/2/cat%20photo.final.png', 'cat photo.final.png'],
  [file, '/attachments/1/2/cat.final.png?format=webp', 'cat.final.webp'],
  [file, '/attachments/1/2/README?format=webp', 'README.webp'],
] as const)('the text by %o for %s is %s', (format, target, text) => {
  expect(format(target)).toBe(text);
});
