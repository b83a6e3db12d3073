import { expect, onTestFinished, test } from 'vitest';
import { findFreePorts } from '../../support/processes/free-ports.ts';
import { type ServiceProcess, startService } from '../../support/processes/service-process.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

const TAKEN = 'another process owns the folder of the result store; renderings are not stored';
const PATH = '/icons/1/ab12.webp?size=16';

/** A service on a folder of renderings, with a way to ask for its readiness. */
async function start(folder: string) {
  const [adminPort = 0] = await findFreePorts(1);
  const service: ServiceProcess = await startService({
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: folder,
    ADMIN_PORT: String(adminPort),
    ADMIN_TOKEN: 'a-token-of-the-tests',
  });
  onTestFinished(() => void service.stop('SIGKILL'));
  const ready = async (): Promise<unknown> =>
    (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).json();
  const ask = async (): Promise<string> => {
    const { status, headers } = await fetch(service.origin + PATH);
    return `${status} ${headers.get('cache-status')}`;
  };
  return { service, ready, ask };
}

test('of two services on one folder, one serves without it until the other is killed', async () => {
  const { path } = await useTemporaryFolder();
  const first = await start(path);
  await expect.poll(first.ready).toMatchObject({ status: 'ready' });
  expect(await first.ask()).toBe('200 darkroom; fwd=miss; stored');

  const second = await start(path);
  await expect.poll(second.ready).toMatchObject({ status: 'degraded', reasons: [TAKEN] });
  expect(second.service.output()).toContain(TAKEN);
  expect(await second.ask()).toBe('200 darkroom; fwd=miss; stored');

  await first.service.stop('SIGKILL');
  await expect.poll(second.ready).toMatchObject({ status: 'ready', reasons: [] });
  await expect.poll(second.service.output).toContain('"msg":"result store scanned"');
  // What the first has stored is found by one that has it in no memory.
  expect(await second.service.stop()).toBe(0);
  const third = await start(path);
  await expect.poll(third.service.output).toContain('"msg":"result store scanned"');
  expect(await third.ask()).toMatch(/detail=store$/);
});
