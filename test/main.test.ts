import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { connectTo } from './support/raw-http.ts';

/** The compiled service as a process, with what it printed so far. */
interface Service {
  readonly process: ChildProcess;
  readonly output: () => { readonly stdout: string; readonly stderr: string };
  readonly exited: Promise<number | null>;
}

describe('the process', () => {
  let service: Service | undefined;
  afterEach(() => service?.process.kill('SIGKILL'));

  const start = (environment: Record<string, string>): Service => {
    const child = spawn(process.execPath, ['dist/main.js'], {
      env: { PATH: process.env.PATH ?? '', ...environment },
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
    service = { process: child, output: () => ({ stdout, stderr }), exited };
    return service;
  };
  const links = ({ output }: Service): string[] =>
    [...output().stderr.matchAll(/^ {2}(http:\S+)$/gm)].flatMap((match) => match[1] ?? []);
  const listening = (running: Service) =>
    expect.poll(() => links(running).length, { timeout: 10_000 }).toBe(3);

  test('starts with nothing set, and each of the three links it prints is an image', async () => {
    const running = start({ PORT: '0' });
    await listening(running);
    for (const link of links(running)) {
      const answer = await fetch(link);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^image\/(webp|gif)$/);
      expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(1_000);
    }
    expect(JSON.parse(running.output().stdout.split('\n')[0] ?? '')).toMatchObject({
      level: 30,
      msg: expect.stringMatching(/^Darkroom listens on http:\/\/127\.0\.0\.1:\d+$/),
    });
  });

  test('ends with status 78 and every fault of its configuration', async () => {
    const running = start({ PORT: 'eighty', STORAGE_DIR: '/nowhere' });
    expect(await running.exited).toBe(78);
    expect(running.output().stderr).toBe(
      'The configuration is not valid:\n' +
        'PORT: expected an integer from 0 to 65535 but received "eighty"\n' +
        'STORAGE_DIR: expected an existing folder but received "/nowhere"\n',
    );
  });

  test('says so when its port is taken', async () => {
    const first = start({ PORT: '0' });
    await listening(first);
    const port = new URL(links(first)[0] ?? '').port;
    const second = start({ PORT: port });
    expect(await second.exited).toBe(1);
    expect(second.output().stderr).toContain('EADDRINUSE');
    first.process.kill('SIGKILL');
  });

  test('finishes what runs after SIGTERM, exits 0, and leaves no worker behind', async () => {
    const running = start({ PORT: '0', WORKERS: '2' });
    await listening(running);
    const { origin } = new URL(links(running)[0] ?? '');
    // Cold, and slow enough to be still running when the signal comes.
    const slow = fetch(
      `${origin}/splashes/1472222222222222223/0123456789abcdef0123456789abcdef.webp?size=4096&quality=lossless`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    const workers = workersOf(running);
    expect(workers).toHaveLength(2);
    running.process.kill('SIGTERM');
    const answer = await slow;
    expect(answer.status).toBe(200);
    expect((await answer.arrayBuffer()).byteLength).toBe(
      Number(answer.headers.get('content-length')),
    );
    expect(await running.exited).toBe(0);
    await expect(fetch(`${origin}/avatars/0.png`)).rejects.toThrow();
    await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  });

  test('does not wait for a client that has connected and says nothing', async () => {
    const running = start({ PORT: '0', WORKERS: '1', SHUTDOWN_GRACE_MS: '20000' });
    await listening(running);
    const silent = await connectTo(Number(new URL(links(running)[0] ?? '').port));
    running.process.kill('SIGTERM');
    expect(await running.exited).toBe(0);
    silent.destroy();
  }, 10_000);

  test('leaves no worker behind when it is killed itself', async () => {
    const running = start({ PORT: '0', WORKERS: '2' });
    await listening(running);
    const workers = workersOf(running);
    expect(workers).toHaveLength(2);
    running.process.kill('SIGKILL');
    await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  });
});

/** Process ids of its children (Linux, proc(5)). */
function workersOf({ process: { pid } }: Service): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
}

function isAlive(pid: string): boolean {
  // A process that has ended but was not waited for yet is a zombie: it holds nothing any more.
  return (
    existsSync(`/proc/${pid}`) && !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  );
}
