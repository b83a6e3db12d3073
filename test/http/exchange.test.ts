import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { Exchange } from '../../src/http/exchange.ts';
import { RecordedLog } from '../support/recorded-log.ts';
import { FakeClock } from '../support/test-app.ts';

test('destroys a body whose head Node rejects, and sends no field of that head', async () => {
  const body = Readable.from(['abc']);
  let isDestroyed = false;
  const server = createServer((request, response) => {
    const exchange = new Exchange(request, response, {
      clock: new FakeClock(),
      log: new RecordedLog(),
      meter: { count: () => undefined, time: () => undefined, countOf: () => ({}) },
      requests: undefined,
      tracer: undefined,
      listAddresses: () => ['192.0.2.1'],
      http: { maxAgeSeconds: {}, hasCdnCacheControl: false },
      keepAliveTimeoutMs: 1_000,
      tagFieldOf: undefined,
    } as never);
    try {
      exchange.respond(200, ['etag', '"a"', 'content-disposition', 'a\nb'], body, 'no-store');
    } catch (error) {
      isDestroyed = body.destroyed;
      exchange.fail(error);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`);
  expect([response.status, response.headers.get('etag')]).toEqual([500, null]);
  expect(isDestroyed).toBe(true);
});
