import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { openStream } from '../../support/open-stream.ts';
import { useDnsServer } from '../../support/sites/dns-server.ts';
import { forbiddenAddresses, forbiddenSpellings } from '../../support/sites/hostile-addresses.ts';
import { useSiteServer } from '../../support/sites/site-server.ts';
import { type SiteFailure, TestSites } from '../../support/sites/test-sites.ts';

/** Receives all connections to this machine, of both families. */
const inside = await useSiteServer('::').catch(() => useSiteServer('127.0.0.1'));
/** Another address of this machine, which the settings allow. */
const ALLOWED = '127.0.0.9';
const outside = await useSiteServer(ALLOWED);
outside.serve('/cat.png', Buffer.from('a picture'));
const rules = {
  ports: [80, 443, inside.port, outside.port],
  allowedNetworks: [`${ALLOWED}/32`],
};
let sites: TestSites;

/** One address of each range of the guard; `address-guard.test.ts` has the permitted addresses. */
const forbidden = Object.entries(forbiddenAddresses).map(([range, [address = '']]) => {
  return { range, address };
});

beforeEach(() => {
  sites = new TestSites(rules);
  sites.resolver.set('site.test', [ALLOWED]);
});

async function expectRejection(
  url: string,
  reason: SiteFailure['reason'],
  by = sites,
): Promise<SiteFailure> {
  const connections = inside.countConnections();
  const error = await by.failureOf(url);
  expect(error).toMatchObject({
    code: 'ORIGIN_ERROR',
    cause: { name: 'SiteFailure', details: { reason } },
  });
  expect(by.dialled.filter((address) => address !== ALLOWED)).toEqual([]);
  expect(inside.countConnections()).toBe(connections);
  expect(by.outcomes.at(-1)).toBe(reason);
  return error?.cause?.details ?? expect.fail();
}

describe('a forbidden address', () => {
  test.each(forbidden)('$address is rejected on every path to it ($range)', async ({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    for (const scheme of ['http', 'https']) {
      await expectRejection(`${scheme}://${host}:${inside.port}/`, 'address');
    }
    expect(sites.resolver.names).toEqual([]);
    for (const answer of [[address], [ALLOWED, address], [address, ALLOWED]]) {
      sites.resolver.set('evil.test', answer);
      const failure = await expectRejection(`http://evil.test:${inside.port}/`, 'address');
      expect(failure).toMatchObject({ host: 'evil.test', address });
    }
    expect(sites.dialled).toEqual([]);
    outside.redirect('/go', `http://${host}:${inside.port}/`);
    const failure = await expectRejection(`http://site.test:${outside.port}/go`, 'address');
    expect(failure.host).not.toBe('site.test');
  });

  test.each(forbiddenSpellings)(
    '%s is rejected, directly or after a redirect',
    async (spelling) => {
      const url = spelling.replaceAll('%P', String(inside.port));
      await expectRejection(url, 'address');
      expect(sites.resolver.names).toEqual([]);
      // Two of the spellings are relative, and lead back to their source.
      if (/^http:\/?\d/.test(spelling)) return;
      outside.redirect('/go', url);
      await expectRejection(`http://site.test:${outside.port}/go`, 'address');
    },
  );
});

const dns = await useDnsServer({
  'entrance.test': ['middle.test'],
  'middle.test': ['end.test'],
  'end.test': ['10.0.0.1'],
  'good.test': ['cdn.test'],
  'cdn.test': ['edge.test'],
  'edge.test': [ALLOWED],
  'to-localhost.test': ['localhost'],
  localhost: ['127.0.0.1', '::1'],
  'to-intranet.test': ['redis'],
  redis: ['10.0.0.7'],
  // The IPv4 address is allowed, the IPv6 address is internal.
  'split.test': ['families.test'],
  'families.test': [ALLOWED, '::1'],
  // An address next to the alias, which no resolver should return.
  'both.test': ['127.0.0.1', 'edge.test'],
  'to-number.test': ['127.0.0.1.', 'dangling.test'],
  'dangling.test': ['gone.test'],
  'circle.test': ['elcric.test'],
  'elcric.test': ['circle.test'],
});

describe('an alias of another name, resolved by c-ares', () => {
  const resolve = () => new TestSites({ ...rules, dnsServers: [dns] });

  test('is fetched if its target is allowed', async () => {
    const resolving = resolve();
    const url = `http://good.test:${outside.port}/cat.png`;
    expect(await text((await openStream(resolving, url)).body)).toBe('a picture');
    expect(resolving.dialled).toEqual([ALLOWED]);
  });

  test.each(['entrance.test', 'to-localhost.test', 'to-intranet.test', 'split.test', 'both.test'])(
    '%s resolves to an internal address',
    async (name) => {
      const resolving = resolve();
      const failure = await expectRejection(`http://${name}:${inside.port}/`, 'address', resolving);
      expect(failure.host).toBe(name);
      expect(resolving.dialled).toEqual([]);
    },
  );

  test.each(['dangling.test', 'circle.test', 'to-number.test'])(
    '%s has no target',
    async (name) => {
      const resolving = resolve();
      await expectRejection(`http://${name}:${inside.port}/`, 'name', resolving);
      expect(resolving.dialled).toEqual([]);
    },
  );
});
