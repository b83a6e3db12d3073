import { afterEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../src/media/errors.ts';
import type { Renderer } from '../../src/pipeline/ports.ts';
import { metricsSettings, scrape } from '../support/prometheus-text.ts';
import { connectTo, sendRaw } from '../support/raw-http.ts';
import { createTestApp, RecordingRequestLog, samples, type TestApp } from '../support/test-app.ts';

const first = '/icons/1/ab.webp?size=16';
const second = '/icons/1/ab.webp?size=20';

let app: TestApp;
let log: RecordingRequestLog;
let port: number;

afterEach(() => app.close());

/** Has the first size of an original rendered; what comes of the second one is the test's affair. */
async function startWith(renderSecond: Renderer['render']): Promise<void> {
  let renders = 0;
  const renderer: Renderer = {
    render: (...run) => {
      renders += 1;
      return renders === 1 ? Promise.resolve(samples.webp) : renderSecond(...run);
    },
  };
  log = new RecordingRequestLog('without hits');
  app = await createTestApp({ renderer, requestLog: log, settings: metricsSettings });
  app.originals.put('icons/1/ab', samples.jpeg);
  port = await app.listen();
  expect((await sendRaw(port, 'GET', first)).status).toBe(200);
  await expect.poll(() => log.lines).toHaveLength(1);
}

async function counted(status: number, cache: string): Promise<number> {
  const labels = { resource: 'guild icon', status: String(status), cache };
  return (await scrape(app)).read('darkroom_requests_total', labels);
}

describe('a second size of an original that is known, and fresh', () => {
  it.each([
    ['UNPROCESSABLE_MEDIA', 422],
    ['OVERLOADED', 503],
    ['TRANSFORM_TIMEOUT', 504],
  ] as const)('is no hit where it cannot be made: %s', async (code, status) => {
    const failure = new MediaError(code, {
      cause: new Error('scripted'),
      bottleneck: 'workers',
      retryAfterSeconds: 1,
    });
    await startWith(() => Promise.reject(failure));
    const answer = await sendRaw(port, 'GET', second);
    expect(answer.status).toBe(status);
    expect(answer.headers['cache-status']).toBe('darkroom; fwd=miss');
    await expect.poll(() => log.lines).toHaveLength(2);
    expect(log.lines[1]).toMatchObject({ status, code, cache: 'miss' });
    expect(await counted(status, 'miss')).toBe(1);
    expect(await counted(status, 'memory')).toBe(0);
  });

  it('is no hit for whoever leaves before it is made', async () => {
    let hasBegun = false;
    await startWith((_original, _job, { signal }) => {
      hasBegun = true;
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
    const client = await connectTo(port);
    client.write(`GET ${second} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await expect.poll(() => hasBegun).toBe(true);
    client.destroy();
    await expect.poll(() => log.lines).toHaveLength(2);
    expect(log.lines[1]).toMatchObject({ status: 499, cache: 'miss', bytes: 0 });
    expect(await counted(499, 'miss')).toBe(1);
    expect(await counted(499, 'memory')).toBe(0);
  });

  it('is a hit for whoever has it already: nothing is made', async () => {
    await startWith(() => Promise.reject(new Error('nobody needs it')));
    const headers = { 'If-Modified-Since': new Date(0).toUTCString() };
    const answer = await sendRaw(port, 'GET', second, headers);
    expect(answer.status).toBe(304);
    expect(answer.headers['cache-status']).toBe('darkroom; hit');
  });
});
