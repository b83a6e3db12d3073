import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startFlags } from '../support/start-flags.ts';

test('the image starts Node with the flags of npm start', () => {
  const command = /^CMD (\[.+\])$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1] ?? '';
  expect(JSON.parse(command)).toEqual(['node', ...startFlags, 'dist/main.js']);
});
