import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { collect, parseAnswer } from '../../support/http/raw-http.ts';
import { renewTestApp, samples } from '../../support/test-app.ts';

const app = renewTestApp();

/** An original in pieces: what is pushed. */
const openBody = () => new Readable({ read: () => undefined });

describe('an origin that fails in the middle of an attachment', () => {
  const promised = 50_000;

  /** Asks for an attachment of which 20 000 bytes come, and then what `finish` does. */
  async function receive(finish: (body: Readable) => void) {
    const body = openBody();
    body.push(Buffer.alloc(20_000));
    app.originals.put('attachments/1/2/a', Buffer.alloc(promised));
    app.originals.alter = (object) => ({ ...object, body });
    const { bytes, whole } = collect(await app.begin('/attachments/1/2/a'));
    await expect.poll(() => bytes().length).toBeGreaterThan(20_000);
    finish(body);
    return parseAnswer(await whole());
  }

  it.each<[string, (body: Readable) => void, RegExp]>([
    ['breaks off', (body) => body.destroy(new Error('read EIO')), /^read EIO$/],
    ['ends early', (body) => body.push(null), /20000/],
    ['does not end in time', (body) => body.push(Buffer.alloc(promised)), /70000/],
  ])('%s: no client takes the response for whole, and it is logged', async (_, finish, cause) => {
    const response = await receive(finish);
    expect(response.status).toBe(200);
    expect(response.headers['content-length']).toBe(String(promised));
    expect(response.body.length).toBe(20_000);
    expect(app.log.errors).toMatchObject([
      {
        code: 'ORIGIN_ERROR',
        err: { cause: { message: expect.stringMatching(cause) } },
        url: '/attachments/1/2/a',
      },
    ]);
  });
});

describe('a client that goes away', () => {
  it.each([
    ['asset', '/icons/1/ab.webp', 'icons/1/ab'],
    ['passthrough attachment', '/attachments/1/2/a', 'attachments/1/2/a'],
  ])('stops the origin read of an %s, and is no error', async (_, path, key) => {
    const body = openBody();
    body.push(samples.jpeg.subarray(0, 5000));
    app.originals.put(key, samples.jpeg);
    app.originals.alter = (object) => ({ ...object, body });
    const socket = await app.begin(path);
    await expect.poll(() => app.originals.reads.get(key)).toBe(1);
    expect(body.destroyed).toBe(false);

    socket.destroy();
    await expect.poll(() => body.destroyed).toBe(true);
    expect(app.renderer.renders).toBe(0);
    expect((await app.send('GET', '/avatars/0.png')).status).toBe(200);
    expect(app.log.errors).toEqual([]);
  });
});
