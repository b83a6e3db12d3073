import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectTo } from '../support/http/raw-http.ts';
import { metricsSettings, parseScrape, withToken } from '../support/telemetry/prometheus-text.ts';

const BATCH = 20;

const environment = {
  PATH: process.env.PATH,
  PORT: '0',
  WORKERS: '1',
  SHUTDOWN_GRACE_MS: '2000',
  ...metricsSettings,
};

/** Sends batches over one connection; each log line has about a kilobyte. */
async function sendRequests(origin: string | undefined, times: number): Promise<void> {
  const socket = await connectTo(Number(new URL(origin ?? '').port));
  onTestFinished(() => void socket.destroy());
  const request = `GET /attachments/1/2/${'%C3%A9'.repeat(127)} HTTP/1.1\r\nHost: a\r\n\r\n`;
  let responses = 0;
  socket.on('data', (chunk: Buffer) => {
    responses += chunk.toString('latin1').split('HTTP/1.1 404 ').length - 1;
  });
  for (let sent = 0; sent < times; sent += BATCH) {
    socket.write(request.repeat(BATCH));
    await expect.poll(() => responses, { interval: 2 }).toBe(sent + BATCH);
  }
}

describe('a log with a slow reader', () => {
  test('delays no request, loses lines, counts them, and logs the count when it recovers', async () => {
    const child = spawn(process.execPath, ['dist/main.js'], {
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const addressOf = (name: string) =>
      new RegExp(`${name} (?:is|listens) on (http://[\\d.:]+)`).exec(text)?.[1];
    await expect.poll(() => addressOf('Darkroom'), { interval: 20 }).toBeDefined();
    const origin = addressOf('Darkroom');
    const url = `${addressOf('The admin listener')}/metrics`;
    const countLost = async () =>
      parseScrape(await (await fetch(url, { headers: withToken })).text()).read(
        'darkroom_log_lines_lost_total',
      );
    expect(await countLost()).toBe(0);
    child.stdout.pause();
    const count = 12_000;
    await sendRequests(origin, count);
    expect(await countLost()).toBeGreaterThan(10);
    child.stdout.resume();
    await expect.poll(() => text).toContain('"lines":');
    // Counted again, since lines that waited for the reader may also have been lost.
    const lost = await countLost();
    expect(lost).toBeLessThan(count / 2);
    const lines = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    expect(lines.filter(({ msg }) => msg === 'request')).toHaveLength(count - lost);
    expect(lines.filter((line) => 'lines' in line)).toEqual([
      expect.objectContaining({
        level: 40,
        lines: lost,
        msg: 'log lines were lost because the reader of the log is too slow',
      }),
    ]);
  });
});

describe('a log without a reader, which blocks its writer', () => {
  /** Starts a service whose log blocks: another Node process shares the log, and at its end restores blocking mode. */
  async function startBlocked(kind: 'pipe' | 'socket') {
    // Node creates a socket for a child; the shell creates the pipe, whose other end is never read.
    const openPipe = kind === 'pipe' ? 'exec > >(exec sleep 60 2>&- 4>&-); ' : '';
    const other = 'process.stdout.isTTY; process.stdin.on("end", () => {}).resume()';
    const child = spawn(
      'bash',
      [
        '-c',
        `${openPipe}exec 4<&0; "$0" -e '${other}' <&4 2>&- & exec "$0" dist/main.js 4<&-`,
        process.execPath,
      ],
      { env: environment, stdio: ['pipe', 'pipe', 'pipe'], detached: true },
    );
    const gone = once(child, 'exit');
    onTestFinished(() => {
      try {
        process.kill(-(child.pid ?? Number.NaN), 'SIGKILL');
      } catch {}
    });
    let printed = '';
    child.stderr.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    child.stdout.pause();
    const originOf = () => /serves its sample originals on (http:\S+)/.exec(printed)?.[1];
    await expect.poll(originOf, { interval: 20 }).toBeDefined();
    await sleep(500); // until the other process runs
    child.stdin.end();
    await sleep(500); // until it has ended, and the log blocks
    return { child, gone, origin: originOf() ?? '' };
  }

  test.each(['pipe', 'socket'] as const)('does not delay the stop: a %s', async (kind) => {
    const { child, gone, origin } = await startBlocked(kind);
    await sendRequests(origin, 1_500); // more than a pipe or socket holds
    const startMs = performance.now();
    child.kill('SIGTERM');
    // A process that cannot exit ends by the signal that stopped it.
    expect(await gone).toEqual([null, 'SIGTERM']);
    expect(performance.now() - startMs).toBeLessThan(3_000);
  });
});
