import { describe, expect, test } from 'vitest';
import {
  canonicalHostOf,
  canonicalUrlOf,
  type ExternalPolicy,
  examineExternalUrl,
} from '../../src/contract/external-url.ts';
import { brokenUrls } from '../support/sites/hostile-addresses.ts';

const policy: ExternalPolicy = {
  publicUrls: [],
  ports: [80, 443],
  allowedHosts: [],
  blockedHosts: [],
};

describe('the canonical form of a URL', () => {
  test.each([
    ['https://Media.Example.org:443/a%20b?w=1#top', 'https://media.example.org/a%20b?w=1'],
    ['https://a.example', 'https://a.example/'],
    ['https://a.example./x', 'https://a.example/x'],
    ['https://a.example/x#', 'https://a.example/x'],
    ['https://a.example/x?', 'https://a.example/x?'],
    ['https://a.example/a/../b/%2e%2e/c', 'https://a.example/c'],
    ['https://a.example/%7Ex%2fy', 'https://a.example/%7Ex%2fy'],
    ['https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC'],
    ['https://@a.example/', 'https://a.example/'],
    ['http://2130706433/', 'http://127.0.0.1/'],
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['http://0177.0.0.1./', 'http://127.0.0.1/'],
    ['http://１２７.0.0.1/', 'http://127.0.0.1/'],
    ['http://[::ffff:127.0.0.1]/', 'http://[::ffff:7f00:1]/'],
  ])('of %s', (text, canonical) => {
    expect(canonicalUrlOf(text)).toBe(canonical);
  });

  // Node 20 and 22 refuse letters beyond ASCII in `URL.canParse` once V8 has optimized its caller.
  test('of the same text stays the same, however often it is asked for', () => {
    const forms = new Set<string | undefined>();
    for (let time = 0; time < 40_000; time += 1) {
      forms.add(canonicalUrlOf('https://b\u00fccher.example/\u00fc'));
    }
    expect([...forms]).toEqual(['https://xn--bcher-kva.example/%C3%BC']);
  });
});

describe('what may be named', () => {
  const long = (bytes: number): string => `https://a.example/${'x'.repeat(bytes - 18)}`;
  test.each([
    ['https://media.example.org/cat.png', 'media.example.org', 443],
    ['http://media.example.org/', 'media.example.org', 80],
    ['http://media.example.org:443/', 'media.example.org', 443],
    ['https://media.example.org:80/', 'media.example.org', 80],
    ['https://a_b.-c-.example./', 'a_b.-c-.example', 443],
    ['https://bücher.example/', 'xn--bcher-kva.example', 443],
    ['https://8.8.8.8/', '8.8.8.8', 443],
    ['https://[2001:4860::8888]/', '2001:4860::8888', 443],
    [`https://${'a'.repeat(63)}.example/`, `${'a'.repeat(63)}.example`, 443],
    [long(8_192), 'a.example', 443],
    [`${long(8_192)}#fragment`, 'a.example', 443],
  ])('%s', (text, host, port) => {
    const isAddress = /^[\d.]+$|:/.test(host);
    expect(examineExternalUrl(text, policy)).toMatchObject({
      kind: 'fetchable',
      host,
      port,
      isAddress,
    });
  });

  test.each([
    ['no url', 'no url'],
    ['https://a.example/\x85', 'control character'],
    ['file:///etc/passwd', 'scheme'],
    ['https://:secret@a.example/', 'credentials'],
    [long(8_193), 'too long'],
    [`https://a.example/${'é'.repeat(2_000)}`, 'too long'],
    ['https://localhost/', 'host'],
    ['https://a.example:8080/', 'port'],
  ])('not %s: %s', (text, reason) => {
    expect(examineExternalUrl(text, policy)).toEqual({ kind: 'refused', reason });
  });

  test('nothing that breaks a rule', () => {
    const urls = brokenUrls.map((url) => url.replaceAll('%P', '443'));
    expect(urls.filter((url) => examineExternalUrl(url, policy).kind !== 'refused')).toEqual([]);
  });

  test.each([
    [{}, true],
    [{ allowedHosts: ['example.org'] }, true],
    [{ allowedHosts: ['media.example.org'] }, true],
    [{ allowedHosts: ['other.example', 'media.example.org'] }, true],
    [{ allowedHosts: ['a.media.example.org'] }, false],
    [{ allowedHosts: ['dia.example.org'] }, false],
    [{ blockedHosts: ['example.org'] }, false],
    [{ blockedHosts: ['a.example.org'] }, true],
    [{ allowedHosts: ['example.org'], blockedHosts: ['media.example.org'] }, false],
    [{ ports: [8_443] }, false],
  ])('of media.example.org with %j: %s', (more, isFetchable) => {
    const target = examineExternalUrl('https://media.example.org/', { ...policy, ...more });
    expect(target.kind === 'fetchable').toBe(isFetchable);
  });

  test('an address has no subdomains', () => {
    const blocked = { ...policy, blockedHosts: ['8.8.8.8', '2001:4860::8888'] };
    for (const host of ['8.8.8.8', '[2001:4860:0::8888]', '0x8080808']) {
      expect(examineExternalUrl(`http://${host}/`, blocked).kind).toBe('refused');
    }
    expect(examineExternalUrl('http://8.8.8.9/', blocked).kind).toBe('fetchable');
  });
});

test.each([
  ['Example.org', 'example.org'],
  ['example.org.', 'example.org'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['org', 'org'],
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', undefined],
  ['[2001:DB8::1]', '2001:db8::1'],
  ['https://a.example', undefined],
  ['a.example:80', undefined],
  ['a.example/x', undefined],
  ['*.a.example', undefined],
  ['u@a.example', undefined],
  ['', undefined],
])('a host in a list: %s', (text, host) => {
  expect(canonicalHostOf(text)).toBe(host);
});
