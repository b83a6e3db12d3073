import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { queryParameters } from '../../src/contract/media-query.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { type ResourceName, resourceNames, resourceRows } from '../../src/contract/resources.ts';
import type { DescribedResource } from '../../src/explorer/explorer-data.ts';
import {
  formatCurl,
  formatTarget,
  type MediaChoice,
  readTarget,
} from '../../src/explorer/page/media-choice.ts';

const resources: DescribedResource[] = resourceNames.flatMap((name) => {
  const { template, extensions = [], query, isSigned } = resourceRows[name];
  if (isSigned) return [];
  return { name, template, extensions, parameters: queryParameters[query] };
});

const of = (name: ResourceName): DescribedResource => {
  const resource = resources.find((each) => each.name === name);
  if (resource === undefined) throw new Error(name);
  return resource;
};

const choices: readonly MediaChoice[] = [
  {
    resource: of('user avatar'),
    values: { user_id: '1', avatar_hash: 'a_ab12' },
    extension: 'webp',
    parameters: { size: '512', animated: 'true' },
  },
  {
    resource: of('member banner'),
    values: { guild_id: '1', user_id: '2', banner_hash: 'cd' },
    extension: 'gif',
    parameters: {},
  },
  {
    resource: of('attachment'),
    values: { channel_id: '1', attachment_id: '2', filename: "it's 100% #1?é🎉.png" },
    extension: '',
    parameters: { width: '64', format: 'jpg' },
  },
  { resource: of('default avatar'), values: { index: '3' }, extension: 'png', parameters: {} },
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
    const sticker = { resource: of('sticker'), values: { sticker_id: '1' }, extension: 'webp' };
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
        resource: of('user avatar'),
        values: { user_id: text, avatar_hash: text },
        extension: text,
        parameters: { size: text },
      },
      {
        resource: of('attachment'),
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
});
