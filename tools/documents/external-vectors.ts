import { canonicalUrlOf } from '../../src/contract/external-url.ts';
import { formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';

const keys = [
  'an-example-key-of-thirty-two-bytes-or-more',
  'ein Schlüssel, dessen Bytes die seines UTF-8 sind',
];

/** URLs that reveal common mistakes. */
const urls = [
  'https://media.example.org/a%20b/cat.png?w=1&h=2',
  'https://media.example.org/',
  'http://media.example.org/cat.png',
  'https://media.example.org:80/cat.png',
  'https://media.example.org/?',
  'https://media.example.org/cat.png?q=a%2Fb%26c&d=%25',
  'https://media.example.org/%E2%82%AC/%2F/%3F.png',
  'https://media.example.org//cat//.png',
  'https://media.example.org/watch?v=~_-.!*()&t=a+b',
  'https://xn--bcher-kva.example/cat.png',
  'https://8.8.8.8/cat.png',
  'https://[2001:4860:4860::8888]/cat.png',
  // Cases of base64url: - and _, and each length of the last group.
  'https://media.example.org/>>>???',
  'https://media.example.org/a',
  'https://media.example.org/ab',
  'https://media.example.org/abc',
];

/** Other spellings of the first URL with the same query: signed unchanged, they share its cache entry. */
const spellings = [
  'HTTPS://Media.Example.Org/a%20b/cat.png?w=1&h=2',
  'https://media.example.org:443/a%20b/cat.png?w=1&h=2',
  'https://media.example.org./a%20b/cat.png?w=1&h=2',
  'https://media.example.org/x/../a b/cat.png?w=1&h=2#top',
];

/** Correctly signed paths whose URL is never fetched. */
const forbidden = [
  'ftp://media.example.org/cat.png',
  'https://user:secret@media.example.org/cat.png',
  'https://media.example.org:8080/cat.png',
  'https://localhost/cat.png',
  'https://127.0.0.1/cat.png',
  'http://2130706433/cat.png',
  'https://[::ffff:7f00:1]/cat.png',
  'https://media.example.org/\ncat.png',
];

const first = new SigningKeys(keys.slice(0, 1));

/** Contents of `docs/external-vectors.json`, which `npm run docs` writes. */
export const externalVectors = {
  about: [
    'Test vectors of signed paths of external media; docs/signing.md says how they are made.',
    'accepted: key, URL, the path in both forms, and the canonical URL that the cache entry is of.',
    'unauthorized: paths that are a 401 where all keys are accepted.',
    'forbidden: paths that are signed as they should be, and are a 502, since the URL may not be fetched.',
  ],
  keys,
  accepted: [...urls, ...spellings].flatMap((url) => keys.map((key) => describe(key, url))),
  unauthorized: refuse(urls[0] ?? ''),
  forbidden: forbidden.map((url) => ({ url, path: formatExternalPath(url, first) })),
};

/** Formats the segmented path of a URL in canonical form; only the platform creates segmented paths. */
export function formatSegmentedPath(url: string, keys: SigningKeys): string {
  const target = formatSegmentedTarget(url);
  return `/external/${keys.sign(target, 'base64url')}/${target}`;
}

/** Formats the query if there is one, encoded once more, then the scheme, the host and the path. */
function formatSegmentedTarget(url: string): string {
  const [, scheme = '', rest = '', query = ''] = /^(\w+):\/\/([^?]*)(\?.*)?$/.exec(url) ?? [];
  const first = query === '' ? '' : `${encodeURIComponent(query)}/`;
  return `${first}${scheme}/${rest}`;
}

function refuse(url: string) {
  const path = formatExternalPath(url, first);
  const [, , signature = '', ...rest] = path.split('/');
  const target = rest.join('/');
  const refused = {
    'a target of the same length': `/external/${signature}/${target.replace('v2/aH', 'v2/aI')}`,
    'the other form of the target': `/external/${signature}/${formatSegmentedTarget(url)}`,
    'a signature that is cut': `/external/${signature.slice(0, -1)}/${target}`,
    'a signature that is padded': `/external/${signature}=/${target}`,
    'a signature whose last two bits are not zero': `/external/${signature.slice(0, -1)}9/${target}`,
    'base64 instead of base64url': `/external/${signature.replaceAll('-', '+').replaceAll('_', '/')}/${target}`,
    'the digest in hexadecimal': `/external/${Buffer.from(signature, 'base64url').toString('hex')}/${target}`,
    'a target that is encoded once more': `/external/${signature}/${encodeURIComponent(target)}`,
    'a slash at the end': `${path}/`,
    'no signature': `/external/${target}`,
    'a key that is not accepted': formatExternalPath(url, new SigningKeys(['x'.repeat(32)])),
  };
  return Object.entries(refused).map(([why, path]) => ({ why, path }));
}

function describe(key: string, url: string) {
  const signer = new SigningKeys([key]);
  const canonical = canonicalUrlOf(url) ?? '';
  return {
    key,
    url,
    canonical,
    opaque: formatExternalPath(url, signer),
    segmented: formatSegmentedPath(canonical, signer),
  };
}
