import { describe, expect, test } from 'vitest';
import { AddressGuard, type AddressRules } from '../../../src/storage/remote/guard.ts';
import { forbiddenAddresses, publicAddresses } from '../../support/sites/hostile-addresses.ts';

const none: AddressRules = { allowedNetworks: [], blockedNetworks: [], nat64Prefixes: [] };

function rejectionOf(address: string, rules: Partial<AddressRules> = {}): string | undefined {
  return new AddressGuard({ ...none, ...rules }).findRejection(address);
}

describe('the address guard', () => {
  test.each(Object.entries(forbiddenAddresses))('refuses to connect to %s', (_, addresses) => {
    expect(addresses.filter((address) => rejectionOf(address) === undefined)).toEqual([]);
  });

  test.each(publicAddresses)('connects to %s', (address) => {
    expect(rejectionOf(address)).toBeUndefined();
  });

  test.each([
    '',
    'site.test',
    '1.2.3',
    '0x7f.1',
    '010.1.1.1',
    '1',
    '[::1]',
    'fe80::1%eth0',
    '1.1.1.1 ',
  ])('does not accept %j as an address', (text) => {
    expect(rejectionOf(text)).toBe('no address');
  });

  test('connects to private networks that the operator allows, and to no others', () => {
    const rules = { allowedNetworks: ['10.1.0.0/16', 'fd00:1::/32', '192.168.1.1'] };
    expect(rejectionOf('10.1.2.3', rules)).toBeUndefined();
    expect(rejectionOf('::ffff:10.1.2.3', rules)).toBeUndefined();
    expect(rejectionOf('fd00:1::7', rules)).toBeUndefined();
    expect(rejectionOf('192.168.1.1', rules)).toBeUndefined();
    expect(rejectionOf('10.2.0.0', rules)).toBe('private');
    expect(rejectionOf('192.168.1.2', rules)).toBe('private');
    // An address that embeds an allowed one is not allowed itself.
    expect(rejectionOf('64:ff9b::10.1.2.3', rules)).toBe('private in rfc6052');
    expect(rejectionOf('2002:a01:203::', rules)).toBe('private in 6to4');
  });

  test.each([
    '8.8.8.8',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
    '2001:0:808:808::f7f7:f7f7',
    '2a00:1450::5efe:808:808',
    '2a00:64::808:808',
  ])('refuses to connect to %s, which embeds an address of a blocked network', (address) => {
    const rules = { blockedNetworks: ['8.8.8.0/24'], nat64Prefixes: ['2a00:64::/96'] };
    expect(rejectionOf(address)).toBeUndefined();
    expect(rejectionOf(address, rules)).toBe('blocked network');
    // Blocked networks take precedence over allowed ones.
    expect(rejectionOf(address, { ...rules, allowedNetworks: ['0.0.0.0/0', '::/0'] })).toBe(
      'blocked network',
    );
  });

  // In RFC 8215, the translator chooses the length of the prefix, so the guard checks each.
  test.each([
    '64:ff9b:1:808:8:800::',
    '64:ff9b:1:8:8:808::',
    '64:ff9b:1:0:8:808:800:0',
    '64:ff9b:1::808:808',
  ])(
    'refuses to connect to %s, which may embed a blocked address, regardless of allowed networks',
    (address) => {
      const rules = { blockedNetworks: ['8.8.8.8/32'], allowedNetworks: ['::/0'] };
      expect(rejectionOf(address, { ...rules, blockedNetworks: [] })).toBeUndefined();
      expect(rejectionOf(address, rules)).toBe('blocked network');
    },
  );

  test('rejects the addresses of a blocked IPv6 network, and no others', () => {
    const rules = { blockedNetworks: ['2606:4700::/32'] };
    expect(rejectionOf('2606:4700::1111', rules)).toBe('blocked network');
    expect(rejectionOf('2606:4701::1111', rules)).toBeUndefined();
  });

  // RFC 6052 §2.4: 192.0.2.33 in prefixes of each length, with public and private addresses.
  test.each([
    ['2001:db8::/32', '2001:db8:808:808::', '2001:db8:a00:1::'],
    ['2001:db8:100::/40', '2001:db8:108:808:8::', '2001:db8:10a:0:1::'],
    ['2001:db8:122::/48', '2001:db8:122:808:8:800::', '2001:db8:122:a00:0:100::'],
    ['2001:db8:122:300::/56', '2001:db8:122:308:8:808::', '2001:db8:122:30a:0:1::'],
    ['2001:db8:122:344::/64', '2001:db8:122:344:8:808:800:0', '2001:db8:122:344:a:0:100:0'],
    ['2001:db8:122:344::/96', '2001:db8:122:344::808:808', '2001:db8:122:344::a00:1'],
    ['64:ff9b:1::/96', '64:ff9b:1::808:808', '64:ff9b:1::a00:1'],
  ])('checks the IPv4 address inside the NAT64 prefix %s', (prefix, good, bad) => {
    const rules = { nat64Prefixes: [prefix] };
    expect(rejectionOf(good)).toBeDefined();
    expect(rejectionOf(good, rules)).toBeUndefined();
    expect(rejectionOf(bad, rules)).toBe('private');
  });
});
