import { existsSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { composedSamples, heicSample } from '../../support/images/heic-samples.ts';

test.each(Object.keys(composedSamples))('%s is put together as its line says', (name) => {
  const made = composedSamples[name]?.() ?? Buffer.alloc(0);
  const file = new URL(`../../../fixtures/heic/${name}`, import.meta.url);
  if (process.env.UPDATE_GOLDENS === '1') writeFileSync(file, made);
  expect(existsSync(file)).toBe(true);
  expect(heicSample(name).equals(made)).toBe(true);
});
