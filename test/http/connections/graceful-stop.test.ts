import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { collect, connectTo, parseResponse } from '../../support/http/raw-http.ts';
import { eitherListener } from '../../support/http/tls-files.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

const start = (settings: Record<string, string> = {}) =>
  useTestApp({ settings, clientLimits: { sweepIntervalMs: 20 } });

describe('a stop', () => {
  it.each(eitherListener)('completes a running response: %s', async (_, settings) => {
    const app = await start(settings);
    const opened = defer<void>();
    app.originals.put('attachments/1/2/a', samples.text);
    app.originals.alter = async (object) => {
      await opened.promise;
      return object;
    };
    const { allBytes } = collect(await app.begin('/attachments/1/2/a'));
    await expect.poll(() => app.originals.reads.get('attachments/1/2/a')).toBe(1);
    const idle = await app.begin('/avatars/0.png');
    await once(idle, 'data');
    const silent = await app.connect({ isTls: false });
    const port = await app.listen();

    const stopped = app.close();
    await Promise.all([once(idle.resume(), 'close'), once(silent.resume(), 'close')]);
    await expect(connectTo(port)).rejects.toThrow('ECONNREFUSED');
    opened.resolve();
    const response = parseResponse(await allBytes());
    expect(response.status).toBe(200);
    expect(response.headers.connection).toBe('close');
    expect(response.body.equals(samples.text)).toBe(true);
    await stopped;
  });

  it('serves a request that arrives over an idle or new connection, then closes the connection', async () => {
    const app = await useTestApp({ clientLimits: { idleGraceMs: 60_000, sweepIntervalMs: 20 } });
    const idle = await app.begin('/avatars/0.png');
    await once(idle, 'data');
    const fresh = await app.connect();
    const stopped = app.close();
    await sleep(50); // the stop has begun
    const late = await app.connect();
    for (const socket of [idle, fresh, late]) {
      const { allBytes } = collect(socket);
      socket.write('GET /avatars/1.png HTTP/1.1\r\nHost: a\r\n\r\n');
      const response = parseResponse(await allBytes());
      expect([response.status, response.headers.connection]).toEqual([200, 'close']);
    }
    await stopped;
  });

  it('closes a connection after a response that announced keep-alive before the stop', async () => {
    const app = await start();
    const body = new PassThrough();
    body.write(Buffer.alloc(10_000));
    app.originals.put('attachments/1/2/slow', Buffer.alloc(20_000));
    app.originals.alter = (object) => ({ ...object, body });
    const { bytes, allBytes } = collect(await app.begin('/attachments/1/2/slow'));
    await expect.poll(() => parseResponse(bytes()).body.length).toBe(10_000);

    const stopped = app.close();
    body.end(Buffer.alloc(10_000));
    const response = parseResponse(await allBytes());
    expect(response.headers.connection).toBe('keep-alive');
    expect(response.body).toHaveLength(20_000);
    await stopped;
  });

  it('is not delayed by a connection that opens at the last moment', async () => {
    const app = await start();
    app.server.addHook('preClose', async () => {
      const late = await app.connect();
      await once(late.resume(), 'close');
    });
    await app.listen();
    await app.close();
    expect(app.clock.nowMs()).toBeLessThan(5_000);
  });

  it('is not delayed by repeated requests over a persistent connection', async () => {
    const app = await start();
    const socket = await app.begin('/avatars/0.png');
    let responses = 0;
    socket.on('data', () => {
      responses += 1;
      socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    });
    const closed = collect(socket).allBytes();
    await expect.poll(() => responses).toBeGreaterThan(5);
    await app.close();
    await closed;
  });
});
