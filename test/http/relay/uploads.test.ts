import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type IncomingMessage, request as sendRequest } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../support/http/http-client.ts';
import { collect, connectTo, parseAnswer, sendRaw } from '../../support/http/raw-http.ts';
import { OpenapiReader } from '../../support/openapi/openapi-reader.ts';
import { samples } from '../../support/test-app.ts';
import {
  capabilityOf,
  type RelayApp,
  startRelayApp,
  uploadTarget,
} from '../../support/uploads/relay-app.ts';

const reader = new OpenapiReader('docs/openapi.json');

let relay: RelayApp;
beforeAll(async () => {
  relay = await startRelayApp();
  return relay.close;
});

const urlOf = (target: string): string => `http://127.0.0.1:${relay.port}${target}`;
const upload = (target: string, body: Uint8Array, headers: Record<string, string> = {}) =>
  fetch(urlOf(target), { method: 'PUT', body: Buffer.from(body), headers });

describe('an upload', () => {
  test('is stored, and served from then on, though it was asked for before', async () => {
    const url = urlOf('/emojis/77.png?size=16');
    expect((await fetch(url)).status).toBe(404);
    const response = await upload(uploadTarget('emojis/77'), samples.png);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
    expect(response.headers.get('content-length')).toBe('0');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-expose-headers')).toContain('ETag');
    expect(response.headers.get('etag')).toMatch(/^"[^"]+"$/);
    expect(await relay.read('emojis/77')).toEqual(samples.png);
    const served = await fetch(url);
    expect([served.status, served.headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  test('may be of any type and name, and of any length', async () => {
    const key = 'attachments/1/2/Größe ?&#%.bin';
    for (const [number, bytes] of [Buffer.alloc(0), Buffer.alloc(3_000_001, 'x')].entries()) {
      const own = key.replace('/2/', `/${number}/`);
      const response = await upload(uploadTarget(own), bytes, { 'content-type': 'text/html' });
      expect(response.status).toBe(200);
      expect((await relay.read(own)).equals(bytes)).toBe(true);
    }
  });

  test('need not tell its length', async () => {
    const chunks = Array.from({ length: 40 }, () => Buffer.alloc(25_000, 'y'));
    const path = uploadTarget('attachments/5/5/chunked.bin');
    const sent = sendRequest({ port: relay.port, method: 'PUT', path });
    Readable.from(chunks).pipe(sent);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(response.resume().statusCode).toBe(200);
    expect((await relay.read('attachments/5/5/chunked.bin')).length).toBe(1_000_000);
  });

  test('gives the type that it should have precedence over the one that it says', async () => {
    const target = uploadTarget('attachments/6/6/a.txt', { contentType: 'text/plain' });
    expect((await upload(target, samples.text, { 'content-type': 'image/png' })).status).toBe(200);
  });

  test('replaces what is there only where it may, and then what was made of it', async () => {
    const url = urlOf('/emojis/78.png?size=16');
    const target = uploadTarget('emojis/78');
    expect((await upload(target, samples.png)).status).toBe(200);
    const before = await (await fetch(url)).arrayBuffer();
    const refused = await upload(target, samples.webp);
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ code: 'MEDIA_EXISTS' });
    expect(await relay.read('emojis/78')).toEqual(samples.png);
    const replacing = uploadTarget('emojis/78', { replaces: true });
    expect((await upload(replacing, samples.webp)).status).toBe(200);
    const after = await (await fetch(url)).arrayBuffer();
    expect(Buffer.from(after).equals(Buffer.from(before))).toBe(false);
  });

  test('is served in the place of one that was deleted, of which nothing is remembered', async () => {
    const url = urlOf('/emojis/79.png?size=');
    await relay.put('emojis/79', samples.text);
    expect((await fetch(`${url}32`)).status).toBe(415);
    relay.app.clock.advance(299_000);
    expect((await fetch(`${url}16`)).status).toBe(415);
    await rm(join(relay.folder, 'emojis/79'));
    relay.app.clock.advance(2_000);
    expect((await fetch(`${url}32`)).status).toBe(404);
    expect((await upload(uploadTarget('emojis/79'), samples.png)).status).toBe(200);
    expect((await fetch(`${url}16`)).status).toBe(200);
  });

  test('that is refused on its way is read over, so that its client finds the response', async () => {
    const target = uploadTarget('emojis/80');
    const head = `PUT ${target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 30000000\r\n\r\n`;
    const socket = await connectTo(relay.port);
    socket.write(head);
    await new Promise((resolve, reject) => {
      socket.once('close', reject).write(Buffer.alloc(30_000_000), () => resolve(undefined));
    });
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(parseAnswer(answer).status).toBe(415);
    socket.destroy();
  });

  test('may be the second one of its connection, and the connection goes on', async () => {
    const ask = createClient(relay.port, { maxSockets: 1 });
    expect((await ask('/emojis/404.png')).status).toBe(404);
    const empty = { 'content-length': '0' };
    const options = { method: 'PUT', headers: empty };
    expect((await ask(uploadTarget('attachments/7/7/a'), options)).status).toBe(200);
    expect((await ask(uploadTarget('attachments/7/7/b'), options)).status).toBe(200);
    expect((await ask('/emojis/404.png')).status).toBe(404);
  });

  test('of HTTP/1.0 is not told to go on, which such a client takes for the whole response', async () => {
    const socket = await connectTo(relay.port);
    const head = 'HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue';
    socket.write(`PUT ${uploadTarget('attachments/5/6/old.txt')} ${head}\r\n\r\nhi`);
    expect((await collect(socket).whole()).toString('latin1')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('has one line in the log, without its capability', async () => {
    const target = uploadTarget('attachments/8/8/line.txt');
    await upload(target, samples.text);
    await upload(target.slice(0, -1), samples.text);
    const lines = relay.requests.filter(({ asset }) => asset.includes('/8/8/'));
    expect(lines).toMatchObject([
      {
        method: 'PUT',
        resource: 'upload',
        status: 200,
        asset: '/v1/relay/attachments/8/8/line.txt',
      },
      { method: 'PUT', resource: 'upload', status: 401, code: 'UNAUTHORIZED' },
    ]);
    expect(lines[0]).toMatchObject({ receivedBytes: samples.text.length });
    const capability = target.slice(target.indexOf('t=') + 2, -10);
    expect(JSON.stringify(relay.requests)).not.toContain(capability);
    expect(JSON.stringify(relay.app.log)).not.toContain(capability);
  });
});

describe('the path of an upload', () => {
  test('is documented, with the form of its capability', () => {
    const uploads = reader.operations('uploads');
    expect(uploads.map(({ method }) => method)).toEqual(['OPTIONS', 'PUT']);
    const schema = uploads[1]?.parameters.find(({ name }) => name === 't')?.schema;
    if (schema === undefined) return expect.fail('there is no capability');
    const capability = capabilityOf('emojis/1');
    expect(reader.isValidText(schema, capability)).toBe(true);
    for (const wrong of ['', `${capability}=`, `${capability}.`, capability.replace('.', '')]) {
      expect(reader.isValidText(schema, wrong), wrong).toBe(false);
    }
  });

  test('is open to preflights of any site', async () => {
    const answer = await sendRaw(relay.port, 'OPTIONS', '/v1/relay/emojis/1', {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'content-type',
    });
    expect(answer.status).toBe(204);
    const [documented] = reader.operations('uploads');
    expect(reader.findDeviations(documented ?? expect.fail(), answer)).toEqual([]);
    expect(answer.headers).toMatchObject({
      allow: 'PUT, OPTIONS',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'PUT, OPTIONS',
      'access-control-allow-headers': 'Content-Type, *',
    });
  });

  test.each(['GET', 'HEAD', 'POST', 'DELETE', 'PATCH', 'SPAM'])('has no %s', async (method) => {
    const answer = await sendRaw(relay.port, method, uploadTarget('emojis/1'));
    expect([answer.status, answer.headers.allow]).toEqual([405, 'PUT, OPTIONS']);
    if (method !== 'HEAD') expect(answer.body.toString()).toContain('use PUT or OPTIONS.');
  });
});
