import { expect, test } from 'vitest';
import { findFreePorts } from '../support/processes/local-server.ts';
import { usePlainNginx } from '../support/processes/nginx.ts';
import { startService } from '../support/processes/service-process.ts';

test('clients see no error while an upgrade moves nginx from one port to the other, and back', async () => {
  const [blue = 0, green = 0] = await findFreePorts(2);
  const start = (port: number) => startService({ PORT: String(port) });
  const nginx = await usePlainNginx(blue, green);
  const statuses: number[] = [];
  const request = async (): Promise<void> => {
    // All URLs differ, so none is cached.
    const path = `/attachments/1/4/concert-grey.jpg?width=${16 + statuses.length}`;
    const response = await fetch(`http://127.0.0.1:${nginx.port}${path}&quality=low&format=jpg`);
    await response.arrayBuffer();
    statuses.push(response.status);
  };
  const requestSome = async (): Promise<void> => {
    for (let count = 0; count < 5; count += 1) await request();
  };
  let isUpgrading = true;
  const oldRelease = await start(blue);
  const load = (async () => {
    while (isUpgrading) await request();
  })();
  const newRelease = await start(green);
  expect(await oldRelease.stop()).toBe(0);
  await requestSome();
  // The rollback, in the other direction.
  const rolledBack = await start(blue);
  expect(await newRelease.stop()).toBe(0);
  await requestSome();
  isUpgrading = false;
  await load;
  await rolledBack.stop();
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(nginx.accessLog()).toContain(`127.0.0.1:${green}`);
});
