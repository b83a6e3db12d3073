import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { beforeAll, describe, expect, test } from 'vitest';
import { useStack } from './stack.ts';

const MEBIBYTE = 1024 * 1024;

const stack = await useStack();

/** Puts a file into the storage whose every four bytes say where they are. */
async function putFile(path: string, sizeBytes: number): Promise<Buffer> {
  const words = Uint32Array.from({ length: Math.ceil(sizeBytes / 4) }, (_, index) => index * 7);
  const bytes = Buffer.from(words.buffer, 0, sizeBytes);
  await stack.put(path, bytes);
  return bytes;
}

const rangesForwarded = (): readonly unknown[] =>
  stack.relay.requests.map(({ headers }) => headers.range);

describe('a large attachment', () => {
  const target = '/attachments/2/64/film.bin';
  let film: Buffer;
  beforeAll(async () => {
    film = await putFile(target, 64 * MEBIBYTE - 5);
  });

  test('is fetched in slices: as many as a range touches', async () => {
    const first = 40 * MEBIBYTE + 17;
    const ask = (range: string) => stack.ask(target, { headers: { Range: `bytes=${range}` } });

    const part = await ask(`${first}-${first + 19}`);
    expect(part).toMatchObject({ status: 206, body: film.subarray(first, first + 20) });
    expect(part.header('content-range')).toBe(`bytes ${first}-${first + 19}/${film.length}`);
    expect(part.header('content-length')).toBe('20');
    expect(rangesForwarded()).toEqual([`bytes=${40 * MEBIBYTE}-${41 * MEBIBYTE - 1}`]);
    // The client has its bytes before nginx has the rest of the slice.
    await expect.poll(() => stack.relay.requests[0]?.bodyBytes).toBe(MEBIBYTE);

    const neighbour = await ask(`${first + 5_000}-${first + 5_099}`);
    expect(neighbour).toMatchObject({ status: 206, nginx: 'hit' });
    expect(neighbour.body).toEqual(film.subarray(first + 5_000, first + 5_100));
    expect(stack.relay.requests).toHaveLength(1);

    const edge = 50 * MEBIBYTE;
    const across = await ask(`${edge - 10}-${edge + 9}`);
    expect(across.body).toEqual(film.subarray(edge - 10, edge + 10));
    expect(stack.relay.requests).toHaveLength(3);

    // How long the file is, only a slice can tell: the first one, for a range counted from the end.
    const suffix = await ask('-10');
    expect(suffix.body).toEqual(film.subarray(-10));
    expect(suffix.header('content-range')).toBe(
      `bytes ${film.length - 10}-${film.length - 1}/${film.length}`,
    );
    expect(rangesForwarded().slice(3)).toEqual([
      `bytes=0-${MEBIBYTE - 1}`,
      `bytes=${63 * MEBIBYTE}-${64 * MEBIBYTE - 1}`,
    ]);

    const open = await ask(`${film.length - 3}-`);
    expect(open).toMatchObject({ status: 206, nginx: 'hit', body: film.subarray(-3) });
    const clamped = await ask(`0-${film.length * 2}`);
    expect(clamped.status).toBe(206);
    expect(clamped.body.equals(film)).toBe(true);
    expect(stack.relay.requests).toHaveLength(64);
  });

  test('is then sent whole, and in part again, without Darkroom', async () => {
    const whole = await stack.ask(target);
    // Not by toMatchObject, which would draw the difference of 64 MiB.
    expect([whole.status, whole.nginx]).toEqual([200, 'hit']);
    expect(whole.header('content-length')).toBe(String(film.length));
    expect(whole.body.equals(film)).toBe(true);
    const head = await stack.ask(target, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, nginx: 'hit' });
    expect(head.header('content-length')).toBe(String(film.length));
    const etag = whole.header('etag');
    const current = await stack.ask(target, { headers: { 'If-None-Match': etag } });
    expect(current.status).toBe(304);
    expect(stack.relay.requests).toHaveLength(0);
  });

  test('costs one slice where only its head is asked for', async () => {
    await putFile('attachments/2/65/film.bin', 8 * MEBIBYTE);
    const head = await stack.ask('/attachments/2/65/film.bin', { method: 'HEAD' });
    expect(head.header('content-length')).toBe(String(8 * MEBIBYTE));
    expect(stack.relay.requests).toHaveLength(1);
  });

  test('is not fetched on when its client has gone', async () => {
    await putFile('attachments/2/66/film.bin', 64 * MEBIBYTE);
    const { port, certificate: ca } = stack.nginx;
    const path = '/attachments/2/66/film.bin';
    const sent = request({ host: '127.0.0.1', port, ca, path, agent: false });
    sent.on('error', () => undefined);
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await once(response, 'readable');
    sent.destroy();
    let seen = -1;
    const isQuiet = (): boolean => {
      const before = seen;
      seen = stack.relay.requests.length;
      return seen === before;
    };
    await expect.poll(isQuiet, { interval: 300, timeout: 5_000 }).toBe(true);
    expect(seen).toBeLessThan(32);
  });

  test('that was replaced is never a mixture of both', async () => {
    const path = '/attachments/2/68/song.bin';
    const before = await putFile(path, 2 * MEBIBYTE);
    await stack.ask(path, { headers: { Range: 'bytes=0-0' } });
    await putFile(path, 2 * MEBIBYTE - 4);
    // The first slice is the old one, the second the new one: nginx hangs up.
    await expect(stack.ask(path)).rejects.toThrow(/aborted|closed|terminated/);
    const kept = await stack.ask(path, { headers: { Range: 'bytes=4-9' } });
    expect(kept.body).toEqual(before.subarray(4, 10));
  });

  test('wanted by many at once is fetched once', async () => {
    const bytes = await putFile('attachments/2/67/song.bin', 3 * MEBIBYTE + 1);
    const clients = Array.from({ length: 20 }, () => stack.connect());
    const responses = await Promise.all(clients.map((ask) => ask('/attachments/2/67/song.bin')));
    for (const { status, body } of responses) {
      expect(status).toBe(200);
      expect(body.equals(bytes)).toBe(true);
    }
    expect(stack.relay.requests).toHaveLength(4);
  });
});
