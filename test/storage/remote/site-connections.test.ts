import { createSocket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { listenUntilEnd } from '../../support/at-end.ts';
import { defer } from '../../support/deferred.ts';
import { tlsFiles } from '../../support/http/tls-files.ts';
import { openStream } from '../../support/open-stream.ts';
import { useDnsServer } from '../../support/sites/dns-server.ts';
import { useHostileServer } from '../../support/sites/hostile-server.ts';
import { useSiteServer } from '../../support/sites/site-server.ts';
import { TestSites } from '../../support/sites/test-sites.ts';

const hosts = Array.from({ length: 12 }, (_, index) => `host${index}.test`);
let site: Awaited<ReturnType<typeof useSiteServer>>;

beforeEach(async () => {
  site = await useSiteServer();
  site.serve('/cat', Buffer.from('a cat'));
});

function openSites(
  limits: ConstructorParameters<typeof TestSites>[1] = {},
  ports: readonly number[] = [],
): TestSites {
  const sites = new TestSites(
    { ports: [site.port, ...ports], allowedNetworks: ['127.0.0.1/32', '::1'] },
    limits,
  );
  for (const host of ['site.test', ...hosts]) sites.resolver.set(host, ['127.0.0.1']);
  return sites;
}

async function readText(sites: TestSites, path: string, host = 'site.test', port = site.port) {
  return text((await openStream(sites, `http://${host}:${port}${path}`)).body);
}

const reasonOf = async (sites: TestSites, url: string) =>
  (await sites.failureOf(url))?.cause?.details.reason;

/** @returns a function for the maximum number of open connections, including half-closed ones */
function watchConnections(): () => number {
  const open = new Set<Socket>();
  let max = 0;
  const note = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    open.add(socket);
    max = Math.max(max, open.size);
    socket.once('close', () => open.delete(socket));
  };
  subscribe('net.client.socket', note);
  onTestFinished(() => void unsubscribe('net.client.socket', note));
  return () => max;
}

describe('redirects of other sites', () => {
  test('are followed up to five times, also if they are relative', async () => {
    const sites = openSites();
    site.redirect('/0', '/cat');
    for (let step = 1; step <= 6; step += 1) site.redirect(`/${step}`, `${step - 1}`);
    expect(await readText(sites, '/4')).toBe('a cat');
    const before = site.requests.length;
    expect(await reasonOf(sites, `http://site.test:${site.port}/5`)).toBe('redirect');
    expect(site.requests.length - before).toBe(6);
  });

  test.each([
    ['to itself', '/a', '/a'],
    ['to itself with a fragment', '/a', '/a#b'],
    ['back to the first URL', '/b', '/a'],
  ])('that loop are rejected: %s', async (_, first, second) => {
    const sites = openSites();
    site.redirect('/a', first);
    site.redirect('/b', second);
    expect(await reasonOf(sites, `http://site.test:${site.port}/a`)).toBe('redirect');
    expect(site.requests.length).toBeLessThanOrEqual(2);
  });

  test('send validators only to the URL that issued them', async () => {
    const sites = openSites();
    site.serve('/cat', Buffer.from('a cat'), { etag: '"one"' });
    site.redirect('/a', '/cat');
    const url = `http://site.test:${site.port}/a`;
    const first = await openStream(sites, url);
    first.body.resume();
    await sites.open(url, { known: 'validators' in first ? first.validators : undefined });
    const sent = site.requests.map(({ headers }) => headers['if-none-match']);
    expect(sent).toEqual([undefined, undefined, undefined, '"one"']);
  });
});

describe('addresses of other sites', () => {
  test('are resolved once per connection, so that rebinding a name changes nothing', async () => {
    const sites = openSites();
    // The name resolves to an allowed address first, then to an internal one.
    sites.resolver.set('rebinding.test', ['127.0.0.1'], ['10.0.0.1']);
    expect(await readText(sites, '/cat', 'rebinding.test')).toBe('a cat');
    expect(sites.resolver.names).toEqual(['rebinding.test']);
    expect(sites.dialled).toEqual(['127.0.0.1']);
    // The idle connection still leads to the first address.
    expect(await readText(sites, '/cat', 'rebinding.test')).toBe('a cat');
    site.dropConnections();
    const url = `http://rebinding.test:${site.port}/cat`;
    expect(await reasonOf(sites, url)).toBe('address');
    expect(sites.dialled).toEqual(['127.0.0.1']);
  });

  test('that do not respond are skipped for others of the same name', async () => {
    const sites = openSites();
    // No server listens on the first address.
    sites.resolver.set('two.test', ['::1', '127.0.0.1']);
    expect(await readText(sites, '/cat', 'two.test')).toBe('a cat');
    expect(sites.dialled).toEqual(['::1', '127.0.0.1']);
  });
});

/** Opens sites whose names a DNS server on this machine resolves. */
async function openNamedSites(
  addresses: readonly string[],
  hold: (sites: TestSites, version: number) => Promise<unknown> | undefined,
): Promise<TestSites> {
  const names = { 'site.test': addresses };
  const dns: string = await useDnsServer(names, (version) => hold(sites, version));
  const sites: TestSites = new TestSites({
    ports: [site.port],
    allowedNetworks: ['127.0.0.1/32', '::1'],
    dnsServers: [dns],
  });
  return sites;
}

const never = new Promise(() => undefined);

describe('a name server that responds for only one family', () => {
  test.each([
    ['AAAA is dropped', 6],
    ['the AAAA response arrives after that of the site', 6],
  ])('does not delay requests: %s', async (what, late) => {
    const responded = defer<void>();
    const hold = what.endsWith('dropped') ? never : responded.promise;
    const sites = await openNamedSites(['127.0.0.1'], (_, version) =>
      version === late ? hold : undefined,
    );
    expect(await readText(sites, '/cat')).toBe('a cat');
    expect(sites.dialled).toEqual(['127.0.0.1']);
    responded.resolve();
  });

  test('delays a request whose other family has no address', async () => {
    let isBuffered = false;
    const sites = await openNamedSites(['127.0.0.1'], (_, version) => {
      if (version === 6) return undefined;
      isBuffered = true;
      return sleep(100); // longer than the client waits for a slower family
    });
    expect(await readText(sites, '/cat')).toBe('a cat');
    expect(isBuffered).toBe(true);
  });

  /** Delays the IPv4 addresses until the IPv6 address, where no server listens, has been dialled. */
  const afterDial = (sites: TestSites, version: number): Promise<unknown> | undefined =>
    version === 4 ? expect.poll(() => sites.dialled).toContain('::1') : undefined;

  test('falls back to the late family after a failed connection', async () => {
    const sites = await openNamedSites(['::1', '127.0.0.1'], afterDial);
    expect(await readText(sites, '/cat')).toBe('a cat');
    expect(sites.dialled).toEqual(['::1', '127.0.0.1']);
  });

  test('also checks the late family', async () => {
    const sites = await openNamedSites(['::1', '127.0.0.1', '10.0.0.1'], afterDial);
    expect(await reasonOf(sites, `http://site.test:${site.port}/cat`)).toBe('address');
    expect(sites.dialled).toEqual(['::1']);
  });

  test('checks all addresses of both families before it connects to the first', async () => {
    for (const addresses of [
      ['127.0.0.1', 'fd00::1'],
      ['::1', '10.0.0.1'],
    ]) {
      const sites = await openNamedSites(addresses, () => undefined);
      expect(await reasonOf(sites, `http://site.test:${site.port}/cat`)).toBe('address');
      expect(sites.dialled).toEqual([]);
    }
  });
});

describe('a connection to another site is rejected or abandoned', () => {
  const late = { code: 'ORIGIN_TIMEOUT', cause: { details: { reason: 'time' } } };

  test('if its certificate is not trusted', async () => {
    let requests = 0;
    const cert = { cert: readFileSync(tlsFiles.cert), key: readFileSync(tlsFiles.key) };
    const server = createServer(cert).on('request', () => {
      requests += 1;
    });
    const port = await listenUntilEnd(server);
    const sites = openSites({}, [port]);
    expect(await reasonOf(sites, `https://site.test:${port}/`)).toBe('certificate');
    expect(requests).toBe(0);
  });

  test('if the name server does not respond by the deadline', async () => {
    const inAll = { slots: 1, maxWaiting: 0, maxWaitMs: 0 };
    const sites = openSites({ connectTimeoutMs: 100, inAll });
    sites.resolver.set('silent.test');
    expect(await sites.failureOf(`http://silent.test:${site.port}/cat`)).toMatchObject(late);
    expect(await readText(sites, '/cat')).toBe('a cat');
  });

  test('if the operator’s name server does not respond, even before the deadline', async () => {
    const silent = createSocket('udp4').bind(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const dnsServers = [`127.0.0.1:${silent.address().port}`];
    const sites = new TestSites({ dnsServers });
    expect(await sites.failureOf('http://silent.test/')).toMatchObject(late);
  });

  test('if the site stops in the middle of the TLS handshake', async () => {
    const silent = await useHostileServer();
    const sites = openSites({ connectTimeoutMs: 100 }, [silent.port]);
    expect(await sites.failureOf(`https://site.test:${silent.port}/`)).toMatchObject(late);
    await expect.poll(() => silent.sockets.size).toBe(0);
  });

  test('when no client waits for it any longer', async () => {
    const silent = await useHostileServer();
    const sites = openSites({}, [silent.port]);
    const controller = new AbortController();
    const pending = sites.open(`https://site.test:${silent.port}/`, { signal: controller.signal });
    await expect.poll(() => silent.sockets.size).toBe(1);
    controller.abort();
    await expect(pending).rejects.toThrow('abort');
    await expect.poll(() => silent.sockets.size).toBe(0);
    expect(sites.outcomes).toEqual(['stopped']);
  });
});

describe('connections to other sites', () => {
  test('are limited to four per host, for all of its ports and idle ones included', async () => {
    const other = await useSiteServer();
    other.serve('/cat', Buffer.from('a cat'));
    const sites = openSites({}, [other.port]);
    const mostConnections = watchConnections();
    const texts = Array.from({ length: 40 }, (_, index) =>
      readText(sites, '/cat', 'site.test', index % 3 ? site.port : other.port),
    );
    expect(new Set(await Promise.all(texts))).toEqual(new Set(['a cat']));
    expect(mostConnections()).toBe(4);
    expect(site.countMaxOpen()).toBeLessThanOrEqual(4);
  });

  test('are limited in total; idle ones are closed for other hosts', async () => {
    const maxWaitMs = 60_000;
    const sites = openSites({ inAll: { slots: 3, maxWaiting: 100, maxWaitMs } });
    const mostConnections = watchConnections();
    const texts = await Promise.all(hosts.map((host) => readText(sites, '/cat', host)));
    expect(texts).toEqual(hosts.map(() => 'a cat'));
    expect(mostConnections()).toBe(3);
    expect(site.countMaxOpen()).toBe(3);
  });

  test('are at most 64 in total, as counted by the site', async () => {
    const sites = openSites();
    const many = Array.from({ length: 192 }, (_, index) => `many${index}.test`);
    for (const host of many) sites.resolver.set(host, ['127.0.0.1']);
    const waiting: ServerResponse[] = [];
    site.handlers.set('/cat', (_request, response) => {
      waiting.push(response);
      if (waiting.length < 64) return;
      for (const each of waiting.splice(0)) each.end('a cat');
    });
    const texts = await Promise.all(many.map((host) => readText(sites, '/cat', host)));
    expect(new Set(texts)).toEqual(new Set(['a cat']));
    expect(site.countMaxOpen()).toBe(64);
  });

  test('that a site does not close are cut off for other requests', async () => {
    const inAll = { slots: 1, maxWaiting: 1, maxWaitMs: 60_000 };
    const hanging = await useHostileServer();
    const sites = openSites({ inAll }, [hanging.port]);
    hanging.behaviours.set('/', (socket) => {
      socket.allowHalfOpen = true;
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na dog');
    });
    expect(await readText(sites, '/', hosts[0], hanging.port)).toBe('a dog');
    expect(await readText(sites, '/cat')).toBe('a cat');
  });

  test('to sites that hang become free for waiting requests after their deadline', async () => {
    const hanging = await useHostileServer();
    const inAll = { slots: 3, maxWaiting: 100, maxWaitMs: 60_000 };
    const sites = openSites({ inAll, firstByteTimeoutMs: 500 }, [hanging.port]);
    const pending = hosts
      .slice(0, 3)
      .map((host) => sites.failureOf(`http://${host}:${hanging.port}/`));
    await expect.poll(() => hanging.requests.length).toBe(3);
    const first = await Promise.race([...pending, sleep(200)]);
    expect(first).toBeUndefined();
    expect(await readText(sites, '/cat')).toBe('a cat');
    for (const failure of await Promise.all(pending)) {
      expect(failure).toMatchObject({ code: 'ORIGIN_TIMEOUT' });
    }
    expect(hanging.sockets.size).toBe(0);
  });

  test('are rejected if too many requests wait for them', async () => {
    const hanging = await useHostileServer();
    const sites = openSites({ perHost: { slots: 1, maxWaiting: 1, maxWaitMs: 60_000 } }, [
      hanging.port,
    ]);
    const url = `http://site.test:${hanging.port}/`;
    const controller = new AbortController();
    const pending = [1, 2].map(() => sites.open(url, { signal: controller.signal }));
    const error = await sites.failureOf(url);
    expect(error).toMatchObject({ code: 'OVERLOADED', bottleneck: 'origin' });
    controller.abort();
    const settled = await Promise.allSettled(pending);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect.poll(() => hanging.sockets.size).toBe(0);
  });
});
