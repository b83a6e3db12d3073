import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { connectSecurely, connectTo, parseAnswer } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

/** An origin that responds when the test lets it. */
class HeldOrigin extends MemoryOrigin {
  open: () => void = () => undefined;
  /** Instead of the stored one. */
  body: Readable | undefined;
  readonly #gate = new Promise<void>((resolve) => {
    this.open = resolve;
  });

  override async read(...args: Parameters<MemoryOrigin['read']>) {
    const object = await super.read(...args);
    await this.#gate;
    return this.body === undefined ? object : { ...object, body: this.body };
  }
}

let app: TestApp;
let origin: HeldOrigin;

async function start(settings: Record<string, string>): Promise<number> {
  origin = new HeldOrigin();
  origin.put('attachments/1/2/a', samples.text);
  app = await createTestApp({ settings, origin, clientLimits: { sweepIntervalMs: 20 } });
  return app.listen();
}

afterEach(() => app.close());

const PATH = '/attachments/1/2/a';

describe('a stop', () => {
  it.each([
    ['plain', {}, connectTo],
    ['with TLS', tlsSettings, connectSecurely],
  ] as const)('lets a running response end, and its connection with it, %s', async (...row) => {
    const [, settings, connectClient] = row;
    const port = await start(settings);
    const busy = await connectClient(port);
    const chunks: Buffer[] = [];
    busy.on('data', (chunk: Buffer) => chunks.push(chunk));
    busy.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await expect.poll(() => origin.reads.get('attachments/1/2/a')).toBe(1);
    const idle = await connectClient(port);
    idle.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(idle, 'data');
    const silent = await connectTo(port);

    const stopped = app.close();
    await Promise.all([once(idle.resume(), 'close'), once(silent.resume(), 'close')]);
    await expect(connectTo(port)).rejects.toThrow('ECONNREFUSED');
    origin.open();
    await once(busy, 'close');
    const response = parseAnswer(Buffer.concat(chunks));
    expect(response.status).toBe(200);
    expect(response.headers.connection).toBe('close');
    expect(response.body.equals(samples.text)).toBe(true);
    await stopped;
  });

  it('closes a connection whose response had begun before, and promised to keep it', async () => {
    const port = await start({});
    const body = new Readable({ read: () => undefined });
    body.push(Buffer.alloc(10_000));
    origin.put('attachments/1/2/slow', Buffer.alloc(20_000));
    origin.body = body;
    origin.open();
    const socket = await connectTo(port);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write('GET /attachments/1/2/slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => parseAnswer(Buffer.concat(chunks)).body.length).toBe(10_000);

    const stopped = app.close();
    body.push(Buffer.alloc(10_000));
    body.push(null);
    await once(socket, 'close');
    const response = parseAnswer(Buffer.concat(chunks));
    expect(response.headers.connection).toBe('keep-alive');
    expect(response.body).toHaveLength(20_000);
    await stopped;
  });

  it('is not held up by one that connects at the last moment', async () => {
    origin = new HeldOrigin();
    app = await createTestApp({ origin, clientLimits: { sweepIntervalMs: 20 } });
    let port = 0;
    app.server.addHook('preClose', async () => {
      const late = await connectTo(port);
      await once(late.resume(), 'close');
    });
    port = await app.listen();
    await app.close();
    expect(app.clock.nowMs()).toBeLessThan(5_000);
  });

  it('is not held up by one that asks again and again over a connection that is kept', async () => {
    const port = await start({});
    const socket = await connectTo(port);
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
