import { describe, expect, test } from 'vitest';
import type { DescribedResource } from '../../src/explorer/explorer-data.ts';
import {
  formatCurl,
  formatTarget,
  type MediaChoice,
  readTarget,
} from '../../src/explorer/page/media-choice.ts';
import { parseTarget } from '../../src/media/media-request.ts';
import { type ResourceName, resourceRows } from '../../src/media/media-resource.ts';
import { describeQuery } from '../../src/media/query-parameter.ts';

const resources: DescribedResource[] = (Object.keys(resourceRows) as ResourceName[]).map((name) => {
  const { template, extensions = [], query } = resourceRows[name];
  return { name, template, extensions, parameters: describeQuery(query) };
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
    const url = `http://127.0.0.1:3000${formatTarget(attachment)}`;
    expect(formatCurl(url, attachment)).toBe(
      `curl -sS -D - -o answer.jpg '${url.replace("'", "'\\''")}'`,
    );
  });
});
