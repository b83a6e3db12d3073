import { describe, expect, test } from 'vitest';
import { parseTarget, resultKey } from '../../src/contract/media-request.ts';
import { hasEffect, withoutAliases } from '../../src/explorer/page/effects.ts';
import {
  formatPath,
  formatTarget,
  type MediaChoice,
} from '../../src/explorer/page/media-choice.ts';
import { attachmentNamed, avatarIn, resourceOf } from './explorer-choices.ts';

const sticker = (extension: string): MediaChoice => ({
  resource: resourceOf('sticker'),
  values: { sticker_id: '1' },
  extension,
  parameters: {},
});

const choices: readonly MediaChoice[] = [
  ...['png', 'jpg', 'jpeg', 'webp', 'gif'].map((extension) => avatarIn(extension)),
  ...['webp', 'gif'].map(sticker),
  attachmentNamed('a.gif'),
  attachmentNamed('a.gif', { width: '64' }),
  attachmentNamed('a.gif', { quality: 'low' }),
  ...['png', 'jpg', 'webp', 'gif'].map((format) => attachmentNamed('a.gif', { format })),
];

const keyOf = (choice: MediaChoice, parameters: MediaChoice['parameters']): string => {
  const query = new URLSearchParams({ ...choice.parameters, ...parameters });
  const parsed = parseTarget(`${formatPath(choice)}?${query}`);
  if (parsed.kind !== 'media') throw new Error('no media');
  return resultKey(parsed.request);
};

describe('what a parameter changes', () => {
  test.each(choices)('is what the service says, by its cache keys: %j', (choice) => {
    const { parameters } = choice.resource;
    for (const { name, form, default: fallback } of parameters) {
      if (form.kind !== 'choice' || fallback === undefined) continue;
      for (const value of form.values) {
        // `animated` has no effect as a whole; of a quality, its other words may have one.
        const others = name === 'animated' ? form.values : [fallback, value];
        const keys = new Set(others.map((each) => keyOf(choice, { [name]: each })));
        if (value === fallback && name !== 'animated') continue;
        expect(hasEffect(choice, name, value), `${name}=${value}`).toBe(keys.size > 1);
      }
    }
  });

  test.each(choices)('is in the URL, and nothing else is: %j', (choice) => {
    const idle = { ...choice, parameters: { ...choice.parameters, animated: 'true' } };
    const target = formatTarget(idle);
    expect(target.includes('animated')).toBe(
      hasEffect(idle, 'animated', 'true') && choice.resource.name !== 'sticker',
    );
  });

  test('is never left out where the contract does not have it: it is refused', () => {
    expect(formatTarget(avatarIn('png', { animated: '1' }))).toBe('/avatars/1/ab12.png?animated=1');
  });
});

test('a format is offered by one word', () => {
  expect(withoutAliases(['png', 'jpg', 'jpeg', 'webp', 'gif'])).toEqual([
    ...['png', 'jpg', 'webp', 'gif'],
  ]);
});
