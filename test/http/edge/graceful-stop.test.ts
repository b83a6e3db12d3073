import { once } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { collect, connectSecurely, connectTo, parseAnswer } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;
let open: () => void;

/** The service before an origin that responds when the test lets it. */
async function start(settings: Record<string, string> = {}): Promise<void> {
  const opened = defer<void>();
  open = opened.resolve;
  app = await useTestApp({ settings, clientLimits: { sweepIntervalMs: 20 } });
  app.originals.put('attachments/1/2/a', samples.text);
  app.originals.alter = async (object) => {
    await opened.promise;
    return object;
  };
}

const PATH = '/attachments/1/2/a';

describe('a stop', () => {
  it.each([
    ['plain', {}, connectTo],
    ['with TLS', tlsSettings, connectSecurely],
  ] as const)('lets a running response end, and its connection with it, %s', async (...row) => {
    const [, settings, connectClient] = row;
    await start(settings);
    const { whole } = collect(await app.begin(PATH, connectClient));
    await expect.poll(() => app.originals.reads.get('attachments/1/2/a')).toBe(1);
    const idle = await app.begin('/avatars/0.png', connectClient);
    await once(idle, 'data');
    const silent = await app.connect();
    const port = await app.listen();

    const stopped = app.close();
    await Promise.all([once(idle.resume(), 'close'), once(silent.resume(), 'close')]);
    await expect(connectTo(port)).rejects.toThrow('ECONNREFUSED');
    open();
    const response = parseAnswer(await whole());
    expect(response.status).toBe(200);
    expect(response.headers.connection).toBe('close');
    expect(response.body.equals(samples.text)).toBe(true);
    await stopped;
  });

  it('closes a connection whose response had begun before, and promised to keep it', async () => {
    await start();
    const body = new Readable({ read: () => undefined });
    body.push(Buffer.alloc(10_000));
    app.originals.put('attachments/1/2/slow', Buffer.alloc(20_000));
    app.originals.alter = (object) => ({ ...object, body });
    const { bytes, whole } = collect(await app.begin('/attachments/1/2/slow'));
    await expect.poll(() => parseAnswer(bytes()).body.length).toBe(10_000);

    const stopped = app.close();
    body.push(Buffer.alloc(10_000));
    body.push(null);
    const response = parseAnswer(await whole());
    expect(response.headers.connection).toBe('keep-alive');
    expect(response.body).toHaveLength(20_000);
    await stopped;
  });

  it('is not held up by one that connects at the last moment', async () => {
    await start();
    app.server.addHook('preClose', async () => {
      const late = await app.connect();
      await once(late.resume(), 'close');
    });
    await app.listen();
    await app.close();
    expect(app.clock.nowMs()).toBeLessThan(5_000);
  });

  it('is not held up by one that asks again and again over a connection that is kept', async () => {
    await start();
    const socket = await app.connect();
    let responses = 0;
    socket.on('data', () => {
      responses += 1;
      socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => responses).toBeGreaterThan(5);
    await app.close();
    await closed;
  });
});
