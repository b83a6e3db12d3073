import { expect, test } from 'vitest';
import type { Environment } from '../../../src/config/setting.ts';
import { enforced, SIGNING_KEY } from '../../support/signed-urls.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

const EXTERNAL = { EXTERNAL_SIGNING_KEYS: SIGNING_KEY };
const NOTE = 'attachments/1/2/note.txt';

/** Starts the service with an attachment in its storage; signs what a query names. */
async function start(settings: Environment) {
  const folder = await useTemporaryFolder();
  const app = await useTestApp({ settings: { STORAGE_DIR: folder.path, ...settings } });
  await folder.put(NOTE, samples.text);
  app.originals.put(NOTE, samples.text);
  const sign = async (query: Record<string, string>) => {
    const { statusCode, headers, body } = await app.get(
      `/explorer/signed.json?${new URLSearchParams(query)}`,
    );
    return { status: statusCode, caching: headers['cache-control'], ...JSON.parse(body) };
  };
  return { get: app.get, sign };
}

test.each([{ EXPLORER: 'on' }, EXTERNAL, enforced])(
  'nothing is signed where there is no key, or the explorer was not asked for: %j',
  async (settings) => {
    const { get, sign } = await start(settings);
    expect((await sign({ url: 'https://a.example/b.png' })).status).toBe(404);
    expect((await sign({ key: NOTE })).status).toBe(404);
    expect((await get('/explorer/originals.json')).body).not.toContain('signature');
    if ('EXPLORER' in settings) return;
    for (const path of ['/', '/explorer/originals.json']) {
      expect((await get(path)).statusCode).toBe(404);
    }
  },
);

test('the explorer signs what another site has, as `darkroom sign` does', async () => {
  const { get, sign } = await start({ EXPLORER: 'on', ...EXTERNAL });
  expect((await get('/explorer/contract.json')).json().signs).toEqual(['external media']);
  expect(await sign({ url: 'https://media.example.org/a%20b/cat.png?w=1&h=2' })).toEqual({
    status: 200,
    caching: 'no-store',
    path: '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI',
  });
  for (const query of [{ url: 'nothing' }, { url: '' }, { key: NOTE }, {}]) {
    expect(await sign(query)).toMatchObject({ status: 400, code: 'INVALID_FORM_BODY' });
  }
});

test('the explorer signs attachments, listed or not, so that they are served', async () => {
  const { get, sign } = await start({ EXPLORER: 'on', ...enforced });
  expect((await get(`/${NOTE}`)).statusCode).toBe(404);
  const { shelves } = (await get('/explorer/originals.json')).json();
  const shelf = shelves.find(({ resource }: { resource: string }) => resource === 'attachment');
  const { path } = await sign({ key: NOTE });
  expect(path).toBe(`/${NOTE}?${new URLSearchParams(shelf.originals[0].signature)}`);
  expect((await get(path)).statusCode).toBe(200);
  for (const key of ['avatars/1/ab12', 'attachments/1', 'attachments/1/02/a.png', '']) {
    expect(await sign({ key })).toMatchObject({ status: 400, caching: 'no-store' });
  }
});
