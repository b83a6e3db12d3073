import { beforeEach, expect, test } from 'vitest';
import { type ExternalApp, useExternalApp } from '../../support/sites/external-app.ts';
import { HostileServer } from '../../support/sites/hostile-server.ts';
import { samples } from '../../support/test-app.ts';

const HANGING = 100;

let app: ExternalApp;
/** What has no behaviour hangs. */
let hanging: HostileServer;

beforeEach(async () => {
  hanging = await HostileServer.use();
  // No deadline ends them: what else is served is not served by that.
  const never = 3_600_000;
  app = await useExternalApp({
    ports: [hanging.port],
    limits: { headTimeoutMs: never, connectTimeoutMs: never, patienceMs: 50 },
  });
});

test('a hundred hosts that hang hold up neither avatars nor other hosts', async () => {
  app.originals.put('avatars/1/ab12', samples.jpeg);
  app.site.serve('/cat.jpg', samples.jpeg);
  const statuses: number[] = [];
  const pending = Array.from({ length: HANGING }, async (_, index) => {
    app.resolver.set(`host${index}.test`, ['127.0.0.1']);
    const { status } = await app.askUrl(`http://host${index}.test:${hanging.port}/`, 'width=40');
    statuses.push(status);
  });
  // They have every connection that there is.
  await expect.poll(() => hanging.requests.length).toBeGreaterThanOrEqual(64);

  const avatar = await app.askTarget('/avatars/1/ab12.webp?size=64');
  expect(avatar.status).toBe(200);
  const rendered = await app.ask('/cat.jpg', 'width=40');
  expect(rendered.status).toBe(200);
  const passedOn = await app.ask('/cat.jpg');
  expect(passedOn.status).toBe(200);
  // Others had to make way, and may come again; most still wait for their hosts.
  expect(statuses.every((status) => status === 503)).toBe(true);
  expect(statuses.length).toBeLessThanOrEqual(HANGING - 62);

  await hanging.close();
  await Promise.all(pending);
  expect(new Set(statuses)).toEqual(new Set([502, 503]));
});

test('of one host that hangs, four requests wait, and none of another', async () => {
  app.site.serve('/cat.jpg', samples.jpeg);
  app.resolver.set('slow.test', ['127.0.0.1']);
  const pending = Array.from({ length: 30 }, (_, index) =>
    app.askUrl(`http://slow.test:${hanging.port}/${index}`, 'width=40'),
  );
  await expect.poll(() => hanging.requests.length).toBe(4);
  expect((await app.ask('/cat.jpg', 'width=40')).status).toBe(200);
  expect(hanging.openConnections).toBe(4);
  // What a site has done four times at once, it does again; nobody else is kept waiting by it.
  await hanging.close();
  const statuses = (await Promise.all(pending)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([502]));
});
