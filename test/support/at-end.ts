import type { Server } from 'node:http';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { closeServer, listenLocally } from './processes/local-server.ts';

/** Runs a cleanup after the current test or, outside of a test, after all tests of the file. */
export function atEnd(end: () => unknown): void {
  const hook = TestRunner.getCurrentTest() === undefined ? afterAll : onTestFinished;
  hook(async () => void (await end()));
}

/** Starts a server on this machine and closes it at the end; returns its port. */
export async function listenUntilEnd(server: Server, host?: string): Promise<number> {
  atEnd(() => closeServer(server));
  return listenLocally(server, 0, host);
}
