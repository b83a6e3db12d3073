import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { collect, parseAnswer, sendBytes } from '../../support/http/raw-http.ts';
import { renewTestApp, samples } from '../../support/test-app.ts';

const app = renewTestApp();

describe('a request target, as no client would send it', () => {
  beforeEach(() => {
    app.originals.put('icons/1/ab', samples.png);
    app.originals.put('attachments/1/2/caf\u00e9 🎉?#%.txt', samples.text);
    app.originals.put('attachments/1/2/%2e%2e', samples.text);
  });

  it.each([
    ['absolute form', `http://cdn.example/icons/1/ab.png`],
    ['absolute form with a port and another host', `https://elsewhere.example:8443/icons/1/ab.png`],
    ['absolute form in capitals', `HTTP://CDN.EXAMPLE/icons/1/ab.png?size=128`],
    ['escaped letters', '/%69cons/%31/%61%62%2e%70ng'],
    ['a query of noise', '/icons/1/ab.png?%ff=%&&&=&v'],
    ['two question marks', '/icons/1/ab.png??size=1'],
  ])('%s is understood', async (_, target) => {
    const response = await app.send('GET', target);
    expect(response.status).toBe(200);
    expect(response.body.equals(samples.png)).toBe(true);
  });

  it.each([
    '/attachments/1/2/caf%C3%A9%20%F0%9F%8E%89%3F%23%25.txt',
    '/attachments/1/2/%252e%252e',
  ])('a file name is decoded once: %s', async (target) => {
    const response = await app.send('GET', target);
    expect(response.status).toBe(200);
    expect(response.body.equals(samples.text)).toBe(true);
  });

  // What Node or Fastify could spoil; all others are in test/contract/targets.test.ts.
  it.each([
    ['/attachments/1/2/..', 400],
    ['/attachments/1/2/%2e%2e', 400],
    ['/attachments/1/2/%', 400],
    ['/attachments/1/2/\u00ff', 400],
    ['/icons/../icons/1/ab.png', 404],
    ['//icons/1/ab.png', 404],
    ['*', 404],
    ['/%69cons%2f1%2fab.png', 404],
  ])('%s is refused as it stands, not tidied up: %i', async (target, status) => {
    const response = await app.send('GET', target);
    expect(response.status).toBe(status);
    const code = status === 400 ? 'INVALID_FORM_BODY' : 'NOT_FOUND';
    expect(JSON.parse(response.body.toString())).toMatchObject({ code });
    expect(app.originals.reads.size).toBe(0);
  });
});

it('a URL of 10 KB is refused by its own rules', async () => {
  const { status, body } = await app.send('GET', `/attachments/1/2/${'x'.repeat(10_000)}`);
  expect(status).toBe(400);
  const errors = [{ path: 'filename', message: expect.stringContaining('10000') }];
  expect(JSON.parse(body.toString())).toMatchObject({ code: 'INVALID_FORM_BODY', errors });
});

describe('a message that is no HTTP', () => {
  it('never gets its refusal into the middle of a response', async () => {
    const size = 8 * 1024 * 1024; // more than the buffers of a connection hold
    app.originals.put('attachments/1/2/zeros', Buffer.alloc(size));
    let received = (): number => 0;
    app.server.server.on('connection', (theirs: Socket) => {
      received = () => theirs.bytesRead;
    });
    const socket = await app.begin('/attachments/1/2/zeros');
    socket.pause();
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    socket.write('garbage\r\n\r\n');
    await expect.poll(received).toBe(socket.bytesWritten);
    const { whole } = collect(socket.resume());
    const { status, body } = parseAnswer(await whole());
    expect(status).toBe(200);
    expect(body.subarray(0, size).equals(Buffer.alloc(size))).toBe(true);
    expect(parseAnswer(body.subarray(size)).status).toBe(400);
    expect(app.log.errors).toEqual([]);
  });

  it('needs no host in HTTP/1.0', async () => {
    const bytes = await sendBytes(await app.listen(), 'GET /avatars/0.png HTTP/1.0\r\n\r\n');
    expect(bytes.toString('latin1')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });
});
