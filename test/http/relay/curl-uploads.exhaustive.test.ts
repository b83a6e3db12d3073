import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { connectTo } from '../../support/http/raw-http.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';
import { type RelayApp, uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

const run = promisify(execFile);
const hasCurl = spawnSync('curl', ['--version']).status === 0;

/** Above 1 MB curl asks before it sends the body, by itself. */
const BYTES = Buffer.alloc(3_000_000, 'x');

const MAX_UPLOADS = 4;

let relay: RelayApp;
let files: TemporaryFolder;

beforeEach(async () => {
  relay = await useRelayApp({ uploadLimits: { maxUploads: MAX_UPLOADS } });
  files = await useTemporaryFolder();
  await files.put('film.mp4', BYTES);
});

/** Uploads the file; `sentBytes` is how much of it was sent, by the last attempt. */
async function curl(target: string, options: readonly string[]) {
  const { stdout, stderr } = await run('curl', [
    ...['--silent', '--verbose', '--upload-file', `${files.path}/film.mp4`],
    ...['--write-out', '\n%{http_code} %{size_upload}', '--expect100-timeout', '60'],
    ...options,
    `http://127.0.0.1:${relay.port}${target}`,
  ]);
  const [status, sentBytes] = (stdout.split('\n').at(-1) ?? '').split(' ').map(Number);
  return { status, sentBytes, stdout, log: stderr };
}

/** Begins an upload that does not end. */
async function occupy(key: string) {
  const socket = await connectTo(relay.port);
  onTestFinished(() => void socket.destroy());
  socket.write(
    `PUT ${uploadTarget(key)} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbeginning`,
  );
  return socket;
}

// Debian's slim images have no curl; .ci/run installs it.
describe.skipIf(!hasCurl)('curl', () => {
  describe.each([
    ['with the length', []],
    ['in chunks', ['--header', 'Transfer-Encoding: chunked']],
  ])('%s', (_, options) => {
    test('asks first, and stores what it sends', async () => {
      const { status, sentBytes, log } = await curl(
        uploadTarget('attachments/1/1/film.mp4'),
        options,
      );
      expect(log).toMatch(/^> Expect: 100-continue/im);
      expect(log).toMatch(/^< HTTP\/1\.1 100 Continue/m);
      expect(status).toBe(200);
      // With the frames of the chunks.
      expect(sentBytes).toBeGreaterThanOrEqual(BYTES.length);
      expect((await relay.read('attachments/1/1/film.mp4')).equals(BYTES)).toBe(true);
    });

    test('is refused before it has sent any of the body', async () => {
      await relay.put('attachments/1/1/there', BYTES.subarray(0, 1));
      const target = uploadTarget('attachments/1/1/there');
      for (const [refused, expected, code] of [
        [target, 409, 'MEDIA_EXISTS'],
        [target.slice(0, -1), 401, 'UNAUTHORIZED'],
        [uploadTarget('backups/all'), 400, 'INVALID_FORM_BODY'],
      ] as const) {
        const { status, sentBytes, stdout, log } = await curl(refused, options);
        expect(log).not.toContain('100 Continue');
        expect([status, sentBytes]).toEqual([expected, 0]);
        expect(stdout).toContain(code);
      }
      expect(await relay.list()).toEqual(['attachments/1/1/there']);
    });
  });

  test('comes back after a 503, when it is told to, and is let in', async () => {
    const numbers = Array.from({ length: MAX_UPLOADS }, (_, number) => number);
    const slow = await Promise.all(numbers.map((n) => occupy(`attachments/2/${n}/slow`)));
    await expect.poll(async () => (await relay.list()).length).toBe(MAX_UPLOADS);
    const statuses = () =>
      relay.requests.filter(({ asset }) => asset.includes('/3/')).map((l) => l.status);
    const sent = curl(uploadTarget('attachments/3/3/film.mp4'), ['--retry', '20']);
    await expect.poll(() => statuses().length).toBeGreaterThan(0);
    for (const socket of slow) socket.destroy();
    const { status, sentBytes, log } = await sent;
    expect(log).toMatch(/^< Retry-After: 1/im);
    expect([status, sentBytes]).toEqual([200, BYTES.length]);
    const all = statuses();
    expect([all[0], all.at(-1)]).toEqual([503, 200]);
    expect(await relay.list()).toEqual(['attachments/3/3/film.mp4']);
  });
});
