import type { Socket } from 'node:net';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { defer, settle } from '../support/deferred.ts';
import { collect, parseAnswer } from '../support/http/raw-http.ts';
import { collectGarbage } from '../support/processes/garbage.ts';
import { at, ScriptedPorts } from '../support/scripted-ports.ts';
import { samples, type TestApp, useTestApp } from '../support/test-app.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';

expectNoUnhandledRejections();

const pictures = [samples.jpeg, samples.png, samples.webp];

let ports: ScriptedPorts;
let app: TestApp;
/** Requests that the server has seen. */
let arrived: number;

beforeEach(async () => {
  ports = new ScriptedPorts();
  const { origin, renderer } = ports;
  app = await useTestApp({ origin, renderer, settings: { WORKERS: '6' } });
  arrived = 0;
  app.server.server.on('request', () => {
    arrived += 1;
  });
});

/** Writes an original down that comes, and is rendered, as soon as it may. */
function write(key: string, bytes: Uint8Array): void {
  const script = { origin: 'responds', render: 'succeeds' } as const;
  ports.originals.set(key, { bytes, name: key, lastModified: new Date(0), ...script });
}

function prepare(run: number): readonly string[] {
  return pictures.map((bytes, index) => {
    const key = `icons/${run}/key${index}`;
    write(key, bytes);
    return key;
  });
}

interface Client {
  readonly key: string;
  readonly socket: Socket;
  readonly response: Promise<Buffer>;
}

async function ask(key: string): Promise<Client> {
  const socket = await app.connect();
  const response = collect(socket).whole();
  socket.write(`GET /${key}.webp?size=16 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  return { key, socket, response };
}

/** Holds every step whose name begins so, until it is let go. */
function hold(what: string): () => void {
  const { promise, resolve } = defer<void>();
  ports.turn = (step) => (step.startsWith(what) ? promise : Promise.resolve());
  return resolve;
}

describe('clients on real connections', () => {
  test('a client that hangs up, before the original comes or while it is rendered, harms no other', async () => {
    let run = 0;
    const leaves = fc.constantFrom('before' as const, 'during' as const, 'never' as const);
    await fc.assert(
      fc.asyncProperty(fc.array(leaves, { minLength: 30, maxLength: 30 }), async (plan) => {
        run += 1;
        arrived = 0;
        const keys = prepare(run);
        const release = hold('the origin');
        const clients = await Promise.all(
          plan.map((_, index) => ask(at(keys, index % keys.length))),
        );
        await expect.poll(() => arrived).toBe(plan.length);
        const hangUp = async (when: 'before' | 'during'): Promise<void> => {
          for (const [index, { socket }] of clients.entries()) {
            if (plan[index] === when) socket.destroy();
          }
          const gone = plan.filter((it) => it === 'before' || it === when).length;
          await expect.poll(app.countConnections).toBe(plan.length - gone);
        };
        await hangUp('before');
        const render = hold('the renderer');
        release();
        const wanted = keys.filter((_, key) =>
          plan.some((it, index) => it !== 'before' && index % keys.length === key),
        );
        await expect.poll(() => ports.renders.size).toBe(wanted.length);
        await hangUp('during');
        render();
        for (const [index, client] of clients.entries()) {
          if (plan[index] !== 'never') continue;
          const { status, body } = parseAnswer(await client.response);
          expect({ status, body: body.toString() }).toEqual({ status: 200, body: client.key });
        }
        expect([...ports.reads.values()]).toEqual(keys.map(() => 1));
        expect([...ports.renders.values()]).toEqual(wanted.map(() => 1));
        await expect.poll(() => ports.openBodies).toBe(0);
        await expect.poll(app.countConnections).toBe(0);
        for (const counts of [ports.originals, ports.reads, ports.renders]) counts.clear();
      }),
      { numRuns: 8 },
    );
    expect(ports.faults).toEqual([]);
    expect(app.log.entries).toEqual([]);
  });

  test('if all hang up a light render goes on, and the next client joins it', async () => {
    const [key = ''] = prepare(1);
    const render = hold('the renderer');
    const clients = await Promise.all(Array.from({ length: 20 }, () => ask(key)));
    await expect.poll(() => [arrived, ports.renders.get(key)]).toEqual([20, 1]);
    for (const { socket } of clients) socket.destroy();
    await expect.poll(app.countConnections).toBe(0);

    const next = await ask(key);
    await expect.poll(() => arrived).toBe(21);
    render();
    const { status, body, headers } = parseAnswer(await next.response);
    expect({ status, body: body.toString() }).toEqual({ status: 200, body: key });
    expect(headers['cache-status']).toBe('darkroom; fwd=miss; stored; collapsed');
    expect([ports.reads.get(key), ports.renders.get(key)]).toEqual([1, 1]);
    expect(ports.faults).toEqual([]);
    expect(ports.openBodies).toBe(0);
  });

  test('a client that has hung up is forgotten, though others still wait for the same', async () => {
    const [key = ''] = prepare(1);
    const release = hold('the origin');
    const seen: WeakRef<object>[] = [];
    app.server.server.on('request', (request: object) => seen.push(new WeakRef(request)));
    const stays = await ask(key);
    const leave = await Promise.all(Array.from({ length: 200 }, () => ask(key)));
    await expect.poll(() => seen.length).toBe(201);
    for (const { socket } of leave) socket.destroy();
    await expect.poll(app.countConnections).toBe(1);
    await settle();
    collectGarbage();
    // Node keeps some for a while, to use them again; that of the client that stays is another.
    expect(seen.filter((request) => request.deref() !== undefined).length).toBeLessThan(20);
    release();
    expect(parseAnswer(await stays.response).status).toBe(200);
  });

  test('for a client that hangs up in the queue nothing is rendered', async () => {
    const keys = Array.from({ length: 16 }, (_, index) => `icons/1/key${index}`);
    for (const [index, key] of keys.entries()) {
      const bytes = Buffer.concat([samples.png, Buffer.alloc(index)]); // of another key all the same
      write(key, bytes);
    }
    const render = hold('the renderer');
    const clients = await Promise.all(keys.map(ask));
    await expect.poll(() => [ports.reads.size, ports.openBodies]).toEqual([keys.length, 0]);
    for (let turn = 0; turn < 5; turn += 1) await settle();
    const working = [...ports.renders.keys()];
    expect(working.length).toBeLessThan(keys.length / 2);
    expect(await app.countConnections()).toBe(keys.length);
    for (const { key, socket } of clients) if (!working.includes(key)) socket.destroy();
    await expect.poll(app.countConnections).toBe(working.length);
    render();
    for (const { key, response } of clients) {
      if (working.includes(key)) expect(parseAnswer(await response).status).toBe(200);
    }
    expect([...ports.renders.keys()]).toEqual(working);
    // And the slots are free again.
    write('icons/1/next', samples.jpeg);
    expect(parseAnswer(await (await ask('icons/1/next')).response).status).toBe(200);
  });
});
