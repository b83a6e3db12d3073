import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { defer, settle } from '../support/deferred.ts';
import { collect, parseResponse } from '../support/http/raw-http.ts';
import { samples, useTestApp } from '../support/test-app.ts';

test('forgets a client that disconnected while others wait for the same result', async () => {
  const app = await useTestApp({ renderer: { render: async () => samples.webp } });
  app.originals.put('icons/1/ab', samples.jpeg);
  const released = defer<void>();
  app.originals.alter = async (object) => {
    await released.promise;
    return object;
  };
  const seen: WeakRef<object>[] = [];
  app.server.server.on('request', (request: object) => seen.push(new WeakRef(request)));
  const request = () => app.begin('/icons/1/ab.webp?size=16');
  const stays = collect(await request());
  const leave = await Promise.all(Array.from({ length: 200 }, request));
  await expect.poll(() => seen.length).toBe(201);
  for (const socket of leave) socket.destroy();
  await expect.poll(app.countConnections).toBe(1);
  await settle();
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  // Node retains some closed sockets for a while, and one client is still connected.
  expect(seen.filter((request) => request.deref() !== undefined).length).toBeLessThan(20);
  released.resolve();
  await expect.poll(() => stays.bytes().length).toBeGreaterThan(0);
  expect(parseResponse(stays.bytes()).status).toBe(200);
});
