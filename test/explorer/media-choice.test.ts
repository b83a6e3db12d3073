import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../src/contract/media-request.ts';
import { signatureParameters } from '../../src/contract/signing/attachment-signature.ts';
import {
  findTarget,
  formatCurl,
  formatTarget,
  type MediaChoice,
  readTarget,
  SIGNATURE_NAMES,
} from '../../src/explorer/page/media-choice.ts';
import { resourceOf, describedResources as resources } from './explorer-choices.ts';

const choices: readonly MediaChoice[] = [
  {
    resource: resourceOf('user avatar'),
    values: { user_id: '1', avatar_hash: 'a_ab12' },
    extension: 'webp',
    parameters: { size: '512', animated: 'true' },
  },
  {
    resource: resourceOf('member banner'),
    values: { guild_id: '1', user_id: '2', banner_hash: 'cd' },
    extension: 'gif',
    parameters: {},
  },
  {
    resource: resourceOf('attachment'),
    values: { channel_id: '1', attachment_id: '2', filename: "it's 100% #1?é🎉.png" },
    extension: '',
    parameters: { width: '64', format: 'jpg' },
  },
  {
    resource: resourceOf('default avatar'),
    values: { index: '3' },
    extension: 'png',
    parameters: {},
  },
];

/** Texts with which an attacker may want to have a shell run something. */
const hostile = [
  "'; printf broken; '",
  "'\\''; printf broken; '\\''",
  ';printf broken',
  '$(printf broken)',
  '`printf broken`',
  'png\nprintf broken',
  'png -o broken',
  'png&printf broken',
  'png|printf broken',
  'png>broken',
  '"$HOME"',
  '\\',
  '!!',
  "''",
] as const;

/**
 * The words that a shell would call curl with.
 *
 * @throws Error if it does anything else
 */
function wordsOf(line: string): readonly string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${line}`;
  const said = execFileSync('sh', ['-c', script], { encoding: 'utf8', cwd: tmpdir() });
  const words = said.split('\0');
  if (words.pop() !== '') throw new Error(`The shell says ${JSON.stringify(said)}.`);
  return words;
}

describe('a choice on the page', () => {
  test.each(choices)('is a target that the service takes: %j', (choice) => {
    const target = parseTarget(formatTarget(choice));
    expect(target.kind).toBe(choice.values.index === undefined ? 'media' : 'default avatar');
  });

  test.each(choices)('is read back from its target: %j', (choice) => {
    expect(readTarget(formatTarget(choice), resources)).toEqual(choice);
  });

  test('leaves out what is so anyway, and nothing else', () => {
    const [avatar] = choices;
    if (avatar === undefined) throw new Error('no choice');
    const parameters = { size: '128', quality: 'high', animated: 'false' };
    expect(formatTarget({ ...avatar, parameters })).toBe('/avatars/1/a_ab12.webp');
    expect(formatTarget({ ...avatar, parameters: { ...parameters, quality: 'low' } })).toBe(
      '/avatars/1/a_ab12.webp?quality=low',
    );
    // Of a sticker the same words are no defaults.
    const sticker = {
      resource: resourceOf('sticker'),
      values: { sticker_id: '1' },
      extension: 'webp',
    };
    expect(formatTarget({ ...sticker, parameters })).toBe(
      '/stickers/1.webp?size=128&quality=high&animated=false',
    );
  });

  test('may be wrong, and is asked for as it is', () => {
    const wrong = '/avatars/01/ab!12.webp?size=512';
    const choice = readTarget(wrong, resources);
    if (choice === undefined) throw new Error('not read');
    expect(choice.values).toEqual({ user_id: '01', avatar_hash: 'ab!12' });
    expect(formatTarget(choice)).toBe(wrong);
    expect(() => parseTarget(wrong)).toThrow(
      expect.objectContaining({ code: 'INVALID_FORM_BODY' }),
    );
  });

  test.each(['/', '/explorer/page', '/avatars/1/2/3.png', ''])('is not made of %j', (target) => {
    expect(readTarget(target, resources)).toBeUndefined();
  });

  test('is a line that a shell takes for one word', () => {
    const [, , attachment] = choices;
    if (attachment === undefined) throw new Error('no choice');
    const target = formatTarget(attachment);
    expect(target).toContain("it's");
    const unquoted = target.replace("'", '%27');
    expect(readTarget(unquoted, resources)).toEqual(attachment);
    const line = formatCurl(`http://127.0.0.1:3000${target}`, attachment);
    expect(line).toBe(`curl -sS -D - -o response.jpg 'http://127.0.0.1:3000${unquoted}'`);
    expect(wordsOf(line)).toEqual([
      ...['-sS', '-D', '-', '-o', 'response.jpg'],
      `http://127.0.0.1:3000${unquoted}`,
    ]);
  });

  test('names the file of the response, if the contract knows its ending', () => {
    const fileOf = (choice: MediaChoice) => wordsOf(formatCurl('http://a/', choice)).at(-2);
    const [avatar, , attachment] = choices;
    if (avatar === undefined || attachment === undefined) throw new Error('no choice');
    expect(fileOf(avatar)).toBe('response.webp');
    expect(fileOf({ ...avatar, extension: 'jpeg' })).toBe('response.jpeg');
    expect(fileOf({ ...avatar, extension: 'bmp' })).toBe('response');
    expect(fileOf(attachment)).toBe('response.jpg');
    expect(fileOf({ ...attachment, parameters: {} })).toBe('response');
    expect(fileOf({ ...attachment, parameters: { format: 'exe' } })).toBe('response');
  });

  test.each(hostile)('does not make a shell do anything else: %j', (text) => {
    const broken: readonly MediaChoice[] = [
      {
        resource: resourceOf('user avatar'),
        values: { user_id: text, avatar_hash: text },
        extension: text,
        parameters: { size: text },
      },
      {
        resource: resourceOf('attachment'),
        values: { channel_id: '1', attachment_id: text, filename: text },
        extension: '',
        parameters: { format: text, width: text },
      },
    ];
    for (const choice of broken) {
      const url = `http://127.0.0.1:3000${formatTarget(choice)}`;
      expect(wordsOf(formatCurl(url, choice))).toEqual([
        ...['-sS', '-D', '-', '-o', 'response'],
        url.replaceAll("'", '%27'),
      ]);
    }
  });

  test('does not, either, as the address of the page brings it', () => {
    const target = '/avatars/1/ab12.x%3Bprintf%20broken';
    const choice = readTarget(target, resources);
    if (choice === undefined) throw new Error('not read');
    expect(choice.extension).toBe('x;printf broken');
    expect(wordsOf(formatCurl(`http://a${formatTarget(choice)}`, choice))).toEqual([
      ...['-sS', '-D', '-', '-o', 'response'],
      `http://a${target}`,
    ]);
  });

  test.each([
    ['https://cdn.example/avatars/1/ab12.png?size=64#x', '/avatars/1/ab12.png?size=64'],
    ['  /avatars/1/ab12.png ', '/avatars/1/ab12.png'],
    ['avatars/1/ab12.png', '/avatars/1/ab12.png'],
    ['avatars/1/ab12', '/avatars/1/ab12.webp'], // the key of an original
    ['emojis/1', '/emojis/1.webp'],
    ['/avatars/1/ab12.png?size=1&size=2', '/avatars/1/ab12.png?size=1&size=2'],
    ['/external/abc/https/a.example/b.png?width=1', '/external/abc/https/a.example/b.png?width=1'],
    ['hello', undefined],
    ['', undefined],
    ['https://cdn.example', undefined],
  ])('is found in what a person puts: %j', (text, target) => {
    expect(findTarget(text, resources)).toBe(target);
  });

  test('keeps what signs it, for its own path', () => {
    expect(SIGNATURE_NAMES).toEqual(signatureParameters);
    const target = '/attachments/1/2/a.png?width=64&ex=69224180&is=6920f000&hm=50d4';
    const choice = readTarget(target, resources);
    expect(choice?.signature).toEqual({ ex: '69224180', is: '6920f000', hm: '50d4' });
    expect(choice && formatTarget(choice)).toBe(target);
  });

  test('leaves a signed path as it is, to the byte', () => {
    const target = '/external/abc/%3Fw%3D1/https/a.example/b%20c/d.png?width=64';
    const choice = readTarget(target, resources);
    expect(choice?.values).toEqual({
      signature: 'abc',
      target: '%3Fw%3D1/https/a.example/b%20c/d.png',
    });
    expect(choice && formatTarget(choice)).toBe(target);
  });
});
