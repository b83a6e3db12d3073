import { describe, expect, test } from 'vitest';
import {
  canonicalHostOf,
  canonicalUrlOf,
  checkExternalUrl,
  type ExternalPolicy,
} from '../../src/contract/external-url.ts';
import { brokenUrls } from '../support/sites/hostile-addresses.ts';

const policy: ExternalPolicy = {
  publicUrls: [],
  ports: [80, 443],
  allowedHosts: [],
  blockedHosts: [],
};

// docs/external-vectors.json shows the canonical form. Node 20 and 22 reject letters beyond ASCII in `URL.canParse`
// once V8 has optimized its caller.
test('canonicalizes a URL the same way every time', () => {
  const forms = new Set<string | undefined>();
  for (let time = 0; time < 40_000; time += 1) {
    forms.add(canonicalUrlOf('https://b\u00fccher.example/\u00fc'));
  }
  expect([...forms]).toEqual(['https://xn--bcher-kva.example/%C3%BC']);
});

describe('the check of an external URL', () => {
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
  ])('accepts %s', (text, host, port) => {
    const isAddress = /^[\d.]+$|:/.test(host);
    const target = { kind: 'fetchable', host, port, isAddress };
    expect(checkExternalUrl(text, policy)).toMatchObject(target);
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
  ])('rejects %s: %s', (text, reason) => {
    expect(checkExternalUrl(text, policy)).toEqual({ kind: 'refused', reason });
  });

  test('never accepts a URL that breaks a rule', () => {
    const urls = brokenUrls.map((url) => url.replaceAll('%P', '443'));
    expect(urls.filter((url) => checkExternalUrl(url, policy).kind !== 'refused')).toEqual([]);
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
  ])('permits media.example.org with %j: %s', (more, isFetchable) => {
    const target = checkExternalUrl('https://media.example.org/', { ...policy, ...more });
    expect(target.kind === 'fetchable').toBe(isFetchable);
  });

  test('does not apply host rules for subdomains to IP addresses', () => {
    const blocked = { ...policy, blockedHosts: ['8.8.8.8', '2001:4860::8888'] };
    for (const host of ['8.8.8.8', '[2001:4860:0::8888]', '0x8080808']) {
      expect(checkExternalUrl(`http://${host}/`, blocked).kind).toBe('refused');
    }
    expect(checkExternalUrl('http://8.8.8.9/', blocked).kind).toBe('fetchable');
  });
});

test.each([
  ['org', 'org'],
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', undefined],
  ['[2001:DB8::1]', '2001:db8::1'],
  ['a.example:80', undefined],
  ['a.example/x', undefined],
  ['*.a.example', undefined],
  ['u@a.example', undefined],
  ['', undefined],
])('parses a host of a list: %s', (text, host) => {
  expect(canonicalHostOf(text)).toBe(host);
});
