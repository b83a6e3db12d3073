import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type DnsServer, startDnsServer } from '../../support/sites/dns-server.ts';
import {
  brokenUrls,
  forbiddenAddresses,
  forbiddenSpellings,
} from '../../support/sites/hostile-addresses.ts';
import { SiteServer } from '../../support/sites/site-server.ts';
import { type SiteFailure, TestSites } from '../../support/sites/test-sites.ts';

/** Whatever leads to this machine, by whichever family and spelling, arrives here. */
let inside: SiteServer;
/** What may be fetched from: another address of this machine, which the operator allows. */
let outside: SiteServer;
let sites: TestSites;

/** Where the second one listens. */
const ALLOWED = '127.0.0.9';

const forbidden = Object.entries(forbiddenAddresses).flatMap(([range, addresses]) =>
  addresses.map((address) => ({ range, address })),
);

beforeAll(async () => {
  inside = await SiteServer.start('::').catch(() => SiteServer.start('127.0.0.1'));
  outside = await SiteServer.start(ALLOWED);
  outside.serve('/cat.png', Buffer.from('a picture'));
});

beforeEach(() => {
  sites = new TestSites({
    ports: [80, 443, inside.port, outside.port],
    allowedNetworks: [`${ALLOWED}/32`],
  });
  sites.resolver.set('site.test', [ALLOWED]);
});

afterAll(async () => {
  await inside.close();
  await outside.close();
});

/** What a fetch that must not be is refused with; nothing was dialled, and nobody came. */
async function expectRefusal(
  url: string,
  reason: SiteFailure['reason'],
  by = sites,
): Promise<SiteFailure> {
  const connections = inside.connections;
  const error = await by.failureOf(url);
  expect(error).toMatchObject({ code: 'ORIGIN_ERROR', cause: { name: 'SiteFailure', reason } });
  expect(by.dialled.filter((address) => address !== ALLOWED)).toEqual([]);
  expect(inside.connections).toBe(connections);
  expect(by.outcomes.at(-1)).toBe(reason);
  return (error as { readonly cause: SiteFailure }).cause;
}

function atPort(text: string): string {
  return text.replaceAll('%P', String(inside.port));
}

describe('an address that may not be dialled', () => {
  test('the tables are as large as they should be', () => {
    expect(forbidden.length + forbiddenSpellings.length + brokenUrls.length).toBeGreaterThan(250);
  });

  test.each(forbidden)('$address, given by DNS ($range)', async ({ address }) => {
    sites.resolver.set('evil.test', [address]);
    const failure = await expectRefusal(`http://evil.test:${inside.port}/`, 'address');
    expect(failure).toMatchObject({ host: 'evil.test', address });
  });

  test.each(forbidden)('$address, in the URL itself ($range)', async ({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    await expectRefusal(`http://${host}:${inside.port}/`, 'address');
    await expectRefusal(`https://${host}:${inside.port}/`, 'address');
    expect(sites.resolver.asked).toEqual([]);
  });

  test.each(forbidden)('$address, by a redirect ($range)', async ({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    outside.handlers.set('/go', (_request, response) => {
      response.writeHead(302, { location: `http://${host}:${inside.port}/` }).end();
    });
    const failure = await expectRefusal(`http://site.test:${outside.port}/go`, 'address');
    expect(failure.host).not.toBe('site.test');
  });

  test.each(forbidden)('$address, among good ones ($range)', async ({ address }) => {
    for (const answer of [
      [ALLOWED, address],
      [address, ALLOWED],
    ]) {
      sites.resolver.set('mixed.test', answer);
      await expectRefusal(`http://mixed.test:${outside.port}/cat.png`, 'address');
    }
    expect(sites.dialled).toEqual([]);
  });

  test.each(forbiddenSpellings)('%s', async (spelling) => {
    await expectRefusal(atPort(spelling), 'address');
    expect(sites.resolver.asked).toEqual([]);
  });

  // Two of them are relative, and lead back to where they are from.
  const absolute = forbiddenSpellings.filter((spelling) => !/^http:\/?\d/.test(spelling));
  test.each(absolute)('%s, by a redirect', async (spelling) => {
    const location = atPort(spelling);
    outside.handlers.set('/go', (_request, response) => {
      // As bytes, which is how servers send what is not ASCII.
      response.writeHead(302, { location: Buffer.from(location).toString('latin1') }).end();
    });
    await expectRefusal(`http://site.test:${outside.port}/go`, 'address');
  });
});

describe('a name that is an alias of another, as a resolver by c-ares reads it', () => {
  /** Each of the forbidden addresses at the end of two aliases. */
  const names = Object.fromEntries(
    forbidden.map(({ address }, index) => [`end${index}.test`, [address]] as const),
  );
  const entrances = forbidden.map(({ range, address }, index) => {
    names[`middle${index}.test`] = [`end${index}.test`];
    names[`entrance${index}.test`] = [`middle${index}.test`];
    return { name: `entrance${index}.test`, range, address };
  });
  let dns: DnsServer;
  let resolving: TestSites;

  beforeAll(async () => {
    dns = await startDnsServer({
      ...names,
      'good.test': ['cdn.test'],
      'cdn.test': ['edge.test'],
      'edge.test': [ALLOWED],
      'to-localhost.test': ['localhost'],
      localhost: ['127.0.0.1', '::1'],
      'to-intranet.test': ['redis'],
      redis: ['10.0.0.7'],
      // IPv4 is good at the end, IPv6 is inside.
      'split.test': ['families.test'],
      'families.test': [ALLOWED, '::1'],
      // An address beside the alias, which no resolver should give.
      'both.test': ['127.0.0.1', 'edge.test'],
      'to-number.test': ['127.0.0.1.', 'dangling.test'],
      'dangling.test': ['gone.test'],
      'circle.test': ['elcric.test'],
      'elcric.test': ['circle.test'],
    });
  });

  beforeEach(() => {
    resolving = new TestSites(
      {
        ports: [inside.port, outside.port],
        allowedNetworks: [`${ALLOWED}/32`],
        dnsServers: [dns.address],
      },
      {},
      { hasRealResolver: true },
    );
  });

  afterAll(() => dns.stop());

  test('is fetched where its end is good', async () => {
    const response = await resolving.open(`http://good.test:${outside.port}/cat.png`);
    if (!(response.body instanceof Readable)) throw new Error('Nothing came.');
    expect((await buffer(response.body)).toString()).toBe('a picture');
    expect(resolving.dialled).toEqual([ALLOWED]);
  });

  test.each(entrances)('$name → $address ($range)', async ({ name, address }) => {
    const failure = await expectRefusal(`http://${name}:${inside.port}/`, 'address', resolving);
    expect(failure.host).toBe(name);
    expect(isIP(failure.address ?? '')).toBe(isIP(address));
  });

  test.each(['to-localhost.test', 'to-intranet.test', 'split.test', 'both.test'])(
    '%s leads inside',
    async (name) => {
      await expectRefusal(`http://${name}:${inside.port}/`, 'address', resolving);
      expect(resolving.dialled).toEqual([]);
    },
  );

  test.each(['dangling.test', 'circle.test', 'to-number.test'])('%s has no end', async (name) => {
    await expectRefusal(`http://${name}:${inside.port}/`, 'name', resolving);
    expect(resolving.dialled).toEqual([]);
  });

  test('by a redirect', async () => {
    outside.handlers.set('/go', (_request, response) => {
      response.writeHead(302, { location: `http://entrance1.test:${inside.port}/` }).end();
    });
    const failure = await expectRefusal(
      `http://good.test:${outside.port}/go`,
      'address',
      resolving,
    );
    expect(failure.host).toBe('entrance1.test');
  });
});

describe('a URL that breaks a rule', () => {
  test.each(brokenUrls)('%j', async (url) => {
    await expectRefusal(atPort(url), 'url');
    expect(sites.resolver.asked).toEqual([]);
    expect(sites.dialled).toEqual([]);
  });
});
