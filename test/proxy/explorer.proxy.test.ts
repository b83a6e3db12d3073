import { expect, test } from 'vitest';
import { useStack } from './stack.ts';

const stack = await useStack({ EXPLORER: 'on' });

const LIST = '/explorer/originals.json';

test('Darkroom has an explorer, at its own port', async () => {
  expect((await stack.askDirectly('/')).status).toBe(200);
  const list = await stack.askDirectly(LIST);
  expect(list.status).toBe(200);
  expect(JSON.parse(list.body.toString())).toHaveProperty('shelves');
});

test.each([
  ...['/', '/?a=b', '/explorer', '/explorer/', '/explorer/explorer.js', LIST, `${LIST}?size=64`],
  // What nginx decodes and resolves.
  ...['/%65xplorer/originals.json', '/explorer%2Foriginals.json', `/a/..${LIST}`, '/.'],
])('nginx responses %s itself, as if there were none', async (target) => {
  const nowhere = await stack.askDirectly('/nothing/here');
  for (const method of ['GET', 'POST', 'OPTIONS']) {
    const response = await stack.ask(target, { method });
    expect(response.status, method).toBe(404);
    expect(response.body).toEqual(nowhere.body);
    expect(response.header('content-type')).toBe(nowhere.header('content-type'));
  }
  const head = await stack.ask(target, { method: 'HEAD' });
  expect(head.status).toBe(404);
  expect(head.body).toHaveLength(0);
  expect(stack.relay.requests).toHaveLength(0);
});

test.each(['/explorers', '/Explorer/', '//', '/nothing/explorer/'])(
  'what only looks alike goes to Darkroom: %s',
  async (target) => {
    const response = await stack.ask(target);
    expect(response.status).toBe(404);
    expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'NOT_FOUND' });
    expect(stack.relay.requestsOf(target)).not.toHaveLength(0);
  },
);
