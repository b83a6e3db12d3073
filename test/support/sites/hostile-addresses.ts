/**
 * Addresses that must never be dialled, by range. Each block of IANA's IPv4 and IPv6 Special-Purpose Address Registries
 * has its first and last address.
 */
export const forbiddenAddresses = tableOf(`
this network (RFC 791): 0.0.0.0 0.0.0.1 0.255.255.255
private use 10/8 (RFC 1918): 10.0.0.0 10.0.0.1 10.255.255.255
shared, carrier-grade NAT (RFC 6598): 100.64.0.0 100.100.100.200 100.127.255.255
loopback (RFC 1122): 127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255
link local, and the metadata of clouds (RFC 3927): 169.254.0.0 169.254.169.254 169.254.170.2
  169.254.255.255
private use 172.16/12 (RFC 1918): 172.16.0.0 172.17.0.1 172.31.255.255
IETF protocol assignments (RFC 6890): 192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.192 192.0.0.255
documentation TEST-NET-1 (RFC 5737): 192.0.2.0 192.0.2.255
AS112 (RFC 7535): 192.31.196.0 192.31.196.255
AMT (RFC 7450): 192.52.193.0 192.52.193.255
6to4 relays (RFC 7526): 192.88.99.0 192.88.99.1 192.88.99.255
private use 192.168/16 (RFC 1918): 192.168.0.0 192.168.1.1 192.168.255.255
AS112, direct delegation (RFC 7534): 192.175.48.0 192.175.48.255
benchmarking (RFC 2544): 198.18.0.0 198.19.255.255
documentation TEST-NET-2 (RFC 5737): 198.51.100.0 198.51.100.255
documentation TEST-NET-3 (RFC 5737): 203.0.113.0 203.0.113.255
multicast (RFC 5771): 224.0.0.0 224.0.0.1 233.252.0.1 239.255.255.255
reserved (RFC 1112): 240.0.0.0 250.1.1.1 255.255.255.254
broadcast (RFC 919): 255.255.255.255
internal despite a public number (Azure): 168.63.129.16
unspecified (RFC 4291): :: 0:0:0:0:0:0:0:0
loopback v6 (RFC 4291): ::1 0:0:0:0:0:0:0:1 000:0:0000::01
mapped IPv4 (RFC 4291): ::ffff:127.0.0.1 ::fFFf:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1
  ::ffff:169.254.169.254 ::ffff:0.0.0.0 0:0:0:0:0:ffff:c0a8:101
compatible IPv4 (RFC 4291): ::127.0.0.1 ::7f00:1 ::10.0.0.1 ::a9fe:a9fe ::8.8.8.8
translated IPv4 (RFC 6145): ::ffff:0:127.0.0.1 ::ffff:0:a9fe:a9fe
NAT64 of a private address (RFC 6052): 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
  64:ff9b::0.0.0.0
local NAT64 (RFC 8215): 64:ff9b:1::7f00:1 64:ff9b:1::a00:1 64:ff9b:1:a9fe:a9:fe00::
  64:ff9b:1::8.8.8.8 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
discard only (RFC 6666): 100:: 100::1 100::ffff:ffff:ffff:ffff
dummy (RFC 9780): 100:0:0:1:: 100:0:0:1::1
Teredo of a private address (RFC 4380): 2001:0:7f00:1::1 2001:0:808:808:0:0:80ff:fffe
  2001:0:a9fe:a9fe:8000:63bf:f7f7:f7f7
IETF protocol assignments v6 (RFC 2928): 2001:1:: 2001:1::1 2001:1ff:ffff::
benchmarking v6 (RFC 5180): 2001:2:: 2001:2:0:ffff::1
AMT v6 (RFC 7450): 2001:3::1
AS112 v6 (RFC 7535, RFC 7534): 2001:4:112::1 2620:4f:8000::1
ORCHID (RFC 4843, RFC 7343): 2001:10::1 2001:20::1 2001:2f:ffff::1
drones (RFC 9374): 2001:30::1 2001:3f:ffff::1
documentation v6 (RFC 3849, RFC 9637): 2001:db8:: 2001:db8::1 3fff::1 3fff:fff::1
6to4 of a private address (RFC 3056): 2002:7f00:1::1 2002:a00:1:: 2002:a9fe:a9fe::1
  2002:c0a8:101::1 2002:0:0::
segment routing (RFC 9602): 5f00::1 5f00:ffff::1
unique local, and the metadata of AWS (RFC 4193): fc00:: fc00::1 fd00:ec2::254 fdff::1
link local v6 (RFC 4291): fe80:: fe80::1 febf:ffff::1
site local (RFC 3879): fec0::1 feff::1
multicast v6 (RFC 4291): ff00:: ff02::1 ff0e::1 ffff::1
unassigned (RFC 4291): 200::1 1000::1 4000::1 8000::1 c000::1 e000::1
ISATAP of a private address (RFC 5214): 2a00:1450::5efe:7f00:1 2a00:1450::5efe:a00:1
  2a00:1450::200:5efe:a9fe:a9fe 2606:4700::5efe:192.168.1.1
`);

/** Parses rows of a name, a colon and words; an indented line continues the row above. */
function tableOf(text: string): Readonly<Record<string, readonly string[]>> {
  const rows = text.trim().replaceAll('\n  ', ' ').split('\n');
  return Object.fromEntries(
    rows.map((row) => {
      const [, range = '', addresses = ''] = /^(.*?): (.*)$/.exec(row) ?? [];
      return [range, addresses.split(' ')];
    }),
  );
}

/** Public addresses, among them the neighbours of forbidden ones. */
export const publicAddresses: readonly string[] = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0'],
  ...['126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
  ...['172.32.0.0', '192.0.1.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0'],
  ...['223.255.255.255', '2606:4700:4700::1111', '2a00:1450:4001:82a::200e', '2400::1'],
  ...['::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1', '2001:0:808:808:0:0:f7f7:f7f7'],
  ...['2a00:1450::5efe:808:808'],
];

/** Returns the URL of a host, with `%P` for the port. */
const urlOf = (host: string): string => `http://${host}:%P/`;

/** Spellings of addresses in URLs that must not be dialled. */
export const forbiddenSpellings: readonly string[] = [
  ...Object.values(
    tableOf(`
this machine, too (CVE-2025-24354): 0.0.0.0 0 0x0 00000 [::] 0.1
spellings that other software accepted as public (CVE-2023-42282, CVE-2024-29415): 0x7f.1 0x7F.0.0.1 127.1
  127.0.1 012.1.2.3 [000:0:0000::01] [::fFFf:127.0.0.1]
the IPv4 address in an IPv6 one (CVE-2026-33480): [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:a00:1]
  [::ffff:a9fe:a9fe] [0:0:0:0:0:ffff:127.0.0.1] [::127.0.0.1] [64:ff9b::127.0.0.1] [2002:7f00:1::]
numbers in any base and of any size: 2130706433 0x7f000001 0X7F000001 017700000001
  0177.0.0.1 0177.0.0.01 00000177.0.0.1 127.0.0.0x1 127.0x000000001 127.65535 2852039166
  0xa9fea9fe 0251.0376.0251.0376 169.254.43518 3232235777 167772161
other characters for the same: １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1 ①②⑦.⓪.⓪.① 𝟏𝟐𝟕.𝟎.𝟎.𝟏
  %31%32%37.0.0.1 127%2e0%2e0%2e1 127.0.0.%31 127.0\u00ad.0.1 127.0.0.1. 127.0.0.1%E3%80%82
  [0:0::1] [::1] [fe80::1] [fd00::1]
`),
  )
    .flat()
    .map(urlOf),
  // Backslashes, doubled slashes, and text that some parsers read as a user or a port.
  'http:\\\\127.0.0.1:%P\\',
  'http:/127.0.0.1:%P/',
  'http:127.0.0.1:%P/',
  'http:////127.0.0.1:%P/',
  'HTTP://127.0.0.1:%P/',
  'http://127.0.0.1:0%P/',
  'http://127.0.0.1:%P#@example.org/',
  'http://127.0.0.1:%P\\@example.org/',
  'http://127.0.0.1:%P?@example.org/',
];

/** URLs that are invalid regardless of their address. */
export const brokenUrls: readonly string[] = [
  ...[
    ...['localhost', 'localhost.', 'LOCALHOST', 'ｌｏｃａｌｈｏｓｔ', 'lo%63alhost'],
    ...['intranet', 'redis'],
    ...['metadata', 'user@site.test', 'user:secret@site.test', ':secret@site.test'],
    ...['site.test@127.0.0.1', 'site..test', '.site.test', 'site.test..', '1.2.3.4.5'],
    ...['1.2.3:99999999999', '256.256.256.256', 'site.123', '[::1', '[::1%25eth0]'],
    ...['[fe80::1%eth0]', '[v1.x]', 'si te.test', 'si\tte.test', 'site.test\u0000.other.test'],
    ...['site<.test', 'site^.test', 'site|.test', 'site%00.test', 'site%2F.test'],
    ...['a!b.test', "a'b.test", 'a(b).test', 'a*b.test', 'a,b.test', 'a;b.test', 'a$b.test'],
    ...['a&b.test', 'a=b.test', 'a~b.test', `${'a'.repeat(64)}.test`, `${'a.'.repeat(126)}test`],
  ].map(urlOf),
  ...['', ' ', 'cat.png', '//127.0.0.1:%P/', '/etc/passwd', 'file:///etc/passwd'],
  ...['file://127.0.0.1/etc/passwd', 'data:image/png;base64,iVBORw0KGgo=', 'ftp://site.test:%P/'],
  ...['gopher://site.test:%P/_x', 'ws://site.test:%P/', 'wss://site.test:%P/'],
  ...['javascript:alert(1)', 'blob:http://site.test:%P/1', 'unix:/var/run/docker.sock'],
  ...['jar:http://site.test:%P/!/', 'dict://site.test:%P/', 'tftp://site.test:%P/'],
  ...['ldap://site.test:%P/', 'about:blank', 'view-source:http://site.test:%P/', 'http://'],
  ...['http:///', 'http://:%P/', 'http://127.0.0.1:%P@site.test/'],
  ...['http://site.test:%P@127.0.0.1:%P/', 'http://site.test:22/', 'http://site.test:6379/'],
  ...['http://site.test:25/', 'http://site.test:0/', 'http://site.test:65536/'],
  ...['http://site.test:%P0/', 'http://site.test:-1/', 'http://site.test:8a/'],
  ...['http://site.test:%P/\n', 'http://site.test:%P/a\r\nHost: other.test'],
  ...['http://site.test:%P/a\tb', '\u0000http://site.test:%P/', 'http://site.test:%P/\u007f'],
  ...['http://site.test:%P/\u0085', `http://site.test:%P/${'a'.repeat(8_192)}`],
];
