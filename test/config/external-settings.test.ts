import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { keySettingNames } from '../../src/config/variables/key-settings.ts';
import { faultsOf } from '../support/setting-faults.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const former = 'the-key-of-last-month-which-still-verifies';

/** A file of keys. */
async function write(text: string | Uint8Array): Promise<string> {
  const { path, put } = await useTemporaryFolder();
  await put('keys', text);
  return join(path, 'keys');
}

test.each(keySettingNames)('%s has its keys from a variable or a file', async (name) => {
  const keysOf = (given: Readonly<Record<string, string>>) =>
    readConfig(given).signingKeys.flatMap(({ secrets }) => secrets);
  for (const text of [`${key},${former}`, ` ${key} , ${former} `]) {
    expect(keysOf({ [name]: text })).toEqual([key, former]);
  }
  const inFile = async (text: string) => keysOf({ [`${name}_FILE`]: await write(text) });
  for (const text of [`${key}\n${former}`, `\ufeff${key}\r\n\r\n${former}\r\n`]) {
    expect(await inFile(text)).toEqual([key, former]);
  }
  expect(await inFile(`${key},x\n`)).toEqual([`${key},x`]);
});

describe('external media', () => {
  test('are off without a key', () => {
    expect(readConfig({ EXTERNAL_PORTS: '80' }).external).toBeUndefined();
  });

  test('have the defaults of the contract', () => {
    const { external } = readConfig({ EXTERNAL_SIGNING_KEYS: key });
    expect(external).toMatchObject({
      ports: [80, 443],
      allowedHosts: [],
      blockedHosts: [],
      allowedNetworks: [],
      blockedNetworks: [],
      nat64Prefixes: [],
      dnsServers: undefined,
      maxConnections: 64,
      maxBytes: 500 * 2 ** 20,
      minAgeSeconds: 3_600,
      maxAgeSeconds: 604_800,
    });
    expect(external?.keys.secrets).toEqual([key]);
  });

  test('read their lists', () => {
    const { external } = readConfig({
      EXTERNAL_SIGNING_KEYS: key,
      EXTERNAL_PORTS: '80, 8443',
      EXTERNAL_ALLOWED_HOSTS: 'Example.org, bücher.example.',
      EXTERNAL_BLOCKED_HOSTS: 'a.example.org',
      EXTERNAL_ALLOWED_NETWORKS: '10.1.0.0/16,::1',
      EXTERNAL_BLOCKED_NETWORKS: '203.0.113.7',
      EXTERNAL_NAT64_PREFIXES: '2001:db8:64::/96',
      EXTERNAL_DNS_SERVERS: '127.0.0.1:5353,::1,[::1]:53',
    });
    expect(external).toMatchObject({
      ports: [80, 8_443],
      allowedHosts: ['example.org', 'xn--bcher-kva.example'],
      blockedHosts: ['a.example.org'],
      allowedNetworks: ['10.1.0.0/16', '::1'],
      blockedNetworks: ['203.0.113.7'],
      nat64Prefixes: ['2001:db8:64::/96'],
      dnsServers: ['127.0.0.1:5353', '::1', '[::1]:53'],
    });
  });

  const words =
    'one key or several, separated by commas, each of 32 bytes at least but received ***';
  const fileWords =
    'a readable file of keys, one a line, each of 32 bytes at least but received ***';
  test.each([
    [{ EXTERNAL_SIGNING_KEYS: 'short' }, `EXTERNAL_SIGNING_KEYS: expected ${words}`],
    [{ EXTERNAL_SIGNING_KEYS: `${key},` }, `EXTERNAL_SIGNING_KEYS: expected ${words}`],
    [{ EXTERNAL_SIGNING_KEYS: `${key},short` }, `EXTERNAL_SIGNING_KEYS: expected ${words}`],
    [{ EXTERNAL_SIGNING_KEYS_FILE: key }, `EXTERNAL_SIGNING_KEYS_FILE: expected ${fileWords}`],
    [
      { EXTERNAL_PORTS: '80,0' },
      'EXTERNAL_PORTS: expected a comma-separated list, each item an integer from 1 to 65535 but received "80,0"',
    ],
    [
      { EXTERNAL_BLOCKED_NETWORKS: '10.0.0.0/33' },
      'EXTERNAL_BLOCKED_NETWORKS: expected a comma-separated list, each item an address or a network but received "10.0.0.0/33"',
    ],
    [
      { EXTERNAL_ALLOWED_HOSTS: 'https://a.example' },
      'EXTERNAL_ALLOWED_HOSTS: expected a comma-separated list, each item a host name or an address but received "https://a.example"',
    ],
    [
      { EXTERNAL_NAT64_PREFIXES: '64:ff9b::/95' },
      'EXTERNAL_NAT64_PREFIXES: expected a comma-separated list, each item an IPv6 network of 32, 40, 48, 56, 64 or 96 bits but received "64:ff9b::/95"',
    ],
    [
      { EXTERNAL_DNS_SERVERS: 'dns.example' },
      'EXTERNAL_DNS_SERVERS: expected a comma-separated list, each item an address, with a port or without (192.0.2.1:53, [2001:db8::1]:53) but received "dns.example"',
    ],
    [
      { EXTERNAL_MIN_AGE_SECONDS: '700000' },
      'EXTERNAL_MAX_AGE_SECONDS: expected at least EXTERNAL_MIN_AGE_SECONDS but received nothing',
    ],
  ])('refuse %j', (given, fault) => {
    expect(faultsOf(given)).toEqual([fault]);
  });

  test.each([
    ['a short one', 'short\n'],
    ['none', '\n\n'],
    ['no UTF-8', Buffer.alloc(64, 0xff)],
  ])('refuse a file with %s', async (_, text) => {
    const given = { EXTERNAL_SIGNING_KEYS_FILE: await write(text) };
    expect(faultsOf(given)).toEqual([`EXTERNAL_SIGNING_KEYS_FILE: expected ${fileWords}`]);
  });

  test('refuse both at once', async () => {
    const given = {
      EXTERNAL_SIGNING_KEYS: key,
      EXTERNAL_SIGNING_KEYS_FILE: await write(former),
    };
    expect(faultsOf(given)).toEqual([
      'EXTERNAL_SIGNING_KEYS_FILE: expected nothing, since EXTERNAL_SIGNING_KEYS is set but received ***',
    ]);
  });
});
