import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { startService } from '../support/processes/service-process.ts';
import { startFlags } from '../support/processes/start-flags.ts';

function readInstruction(name: 'CMD' | 'HEALTHCHECK'): string[] {
  const pattern = name === 'CMD' ? /^CMD (\[.+\])$/m : /^HEALTHCHECK [^[]+CMD (\[.+\])$/m;
  return JSON.parse(pattern.exec(readFileSync('Dockerfile', 'utf8'))?.[1] ?? '[]');
}

test('the image starts Node with the flags of npm start', () => {
  expect(readInstruction('CMD')).toEqual(['node', ...startFlags, 'dist/main.js']);
});

describe("the image's check of its health", () => {
  const check = (environment: Readonly<Record<string, string>>): number | null => {
    const [, ...args] = readInstruction('HEALTHCHECK');
    return spawnSync(process.execPath, args, { env: { ...environment } }).status;
  };

  test('asks the service, and sees that it has gone', async () => {
    const service = await startService({});
    const { port } = new URL(service.origin);
    expect(check({ PORT: port })).toBe(0);
    await service.stop();
    expect(check({ PORT: port })).toBe(1);
  });

  test('asks the admin listener where there is one, which responds for a full service, too', async () => {
    const service = await startService({ ADMIN_PORT: '0', ADMIN_TOKEN: 'a-token-of-a-test' });
    const port =
      /admin listener is on http:\/\/127\.0\.0\.1:(\d+)/.exec(service.output())?.[1] ?? '';
    // Nobody listens on port 1: it is not the media port that was asked.
    expect(check({ ADMIN_PORT: port, PORT: '1' })).toBe(0);
    await service.stop();
    expect(check({ ADMIN_PORT: port, PORT: '1' })).toBe(1);
  });
});
