import type { Server } from 'node:http';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { closeServer, listenLocally } from './processes/local-server.ts';

/** Ends what was started: with the test that has started it or, outside of tests, with the tests of the file. */
export function atEnd(end: () => unknown): void {
  const hook = TestRunner.getCurrentTest() === undefined ? afterAll : onTestFinished;
  hook(async () => void (await end()));
}

/** Has a server listen on this machine until then; returns its port. */
export async function listenUntilEnd(server: Server, host?: string): Promise<number> {
  atEnd(() => closeServer(server));
  return listenLocally(server, 0, host);
}
